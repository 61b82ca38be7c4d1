"""tests/lint/repeats.py finds code that stands in two places, and nothing else."""

from linttest import LintCase


def code(number, name="f", indent="\t"):
    """@number lines that differ from each other."""
    return "".join("%s%s(%d);\n" % (indent, name, line) for line in range(number))


class RepeatsTest(LintCase):
    script, ending = "repeats.py", ".c"

    def test_eight_lines_pass_and_nine_do_not(self):
        self.assertEqual(self.findings(code(8), "a();\n" + code(8)), [])
        self.assertEqual(self.findings(code(9), "a();\n" + code(9)),
                         ["1.c:2: 9 lines, to line 10, stand in 0.c:1, too"])

    def test_the_whole_run_is_named_once(self):
        self.assertEqual(self.findings(code(30) + "b();\n", "a();\n" + code(30) + "c();\n"),
                         ["1.c:2: 30 lines, to line 31, stand in 0.c:1, too"])

    def test_two_places_of_one_file(self):
        self.assertEqual(self.findings(code(12) + "a();\n" + code(12)),
                         ["0.c:14: 12 lines, to line 25, stand in 0.c:1, too"])

    def test_rows_of_a_table_may_be_the_same(self):
        self.assertEqual(self.findings("\t{0, 0},\n" * 16), [])

    def test_layout_does_not_count(self):
        self.assertEqual(len(self.findings(code(9), code(9, indent="  ").replace("\n", "\n\n{\n"))), 1)
        self.assertEqual(self.findings(code(8) + "}\n" * 5, code(8) + "}\n" * 5), [])

    def test_another_name_is_another_line(self):
        self.assertEqual(self.findings(code(20), code(20, name="g")), [])

    def test_includes_and_imports_do_not_count(self):
        includes = "".join("#include <%d.h>\n" % number for number in range(20))
        imports = "".join("import a%d\nfrom b import c%d\n" % (number, number) for number in range(20))
        self.assertEqual(self.findings(includes + code(8), includes + code(8)), [])
        self.assertEqual(self.findings(imports + code(8), imports + code(8)), [])
