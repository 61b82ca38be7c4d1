"""tests/lint/prose.py finds each kind of text that is too long, and says where."""

from linttest import LintCase


def words(number):
    """@number words in lines of ten."""
    lines = [" ".join(["word"] * min(10, number - done)) for done in range(0, number, 10)]
    return "\n".join(lines) + "\n"


class ProseTest(LintCase):
    script, ending = "prose.py", ".md"

    def test_short_texts_pass(self):
        text = "# Title\n\n" + words(39) + "\n## Part\n\n" + words(20) + "\n- " + words(9)
        self.assertEqual(self.findings(text, "", "```\n```\n"), [])

    def test_a_long_paragraph_is_named_by_its_first_line(self):
        text = "# Title\n\nShort.\n\n" + words(90) + "\nShort.\n"
        self.assertEqual(self.findings(text), ["0.md:5: a paragraph of 90 words, not below 90"])
        self.assertEqual(self.findings(text.replace("word", "", 1)), [])

    def test_each_list_item_is_a_paragraph(self):
        items = "- " + words(60) + "1. " + words(20) + "* " + words(20)
        self.assertEqual(self.findings(items), [])
        self.assertEqual(self.findings(items + "- one\n- " + words(60) + words(30)),
                         ["0.md:12: a paragraph of 90 words, not below 90"])

    def test_a_long_line(self):
        self.assertEqual(self.findings("x" * 100 + "\n"), [])
        self.assertEqual(self.findings("one\n\n" + "x" * 101 + "\n"),
                         ["0.md:3: a line of 101 columns, more than 100"])

    def test_a_long_table_cell(self):
        head = "| what | why |\n|---|---|\n"
        self.assertEqual(self.findings(head + "| a | %s |\n" % " ".join(["b"] * 15)), [])
        self.assertEqual(self.findings(head + "| a | %s |\n" % " ".join(["b"] * 16)),
                         ["0.md:3: a table cell of 16 words, more than 15"])
        self.assertEqual(len(self.findings(head + "| a \\| %s | c |\n" % " ".join(["b"] * 14))), 1)

    def test_a_table_that_a_program_printed_is_not_checked(self):
        table = "| a | b |\n|---|---|\n| a | %s |\n" % " ".join(["c"] * 16)
        printed = "<!-- names: printed by it.py -->\n\n" + table + "\n<!-- end of names -->\n"
        self.assertEqual(self.findings(printed), [])
        self.assertEqual(self.findings(printed + table),
                         ["0.md:10: a table cell of 16 words, more than 15"])

    def test_the_median_of_a_file_and_of_all(self):
        long = words(40) + "\n" + words(10) + "\n" + words(60)
        self.assertEqual(self.findings(long), ["0.md:1: the median paragraph has 40 words, not below 40"])
        self.assertEqual(len(self.findings(long, words(5) + "\n" + words(5))), 1)
        self.assertEqual(self.findings(long, words(40))[2:],
                         ["all documents: the median paragraph has 40 words, not below 40"])

    def test_code_comments_and_link_targets_do_not_count(self):
        code = "```sh\n" + "x " * 200 + "\n- " + words(200) + "```\n"
        comment = "<!-- " + words(100) + "-->\n"
        link = "[one](https://example.org/%s)\n" % ("x" * 60)
        self.assertEqual(self.findings(code + comment + link), [])
        self.assertEqual(self.findings("> ```\n> " + "x " * 100 + "\n> ```\n"), [])
        self.assertEqual(self.findings(comment * 2 + "x" * 101 + "\n"),
                         ["0.md:23: a line of 101 columns, more than 100"])
