"""On a terminal a report is some screens long, and says what it left out; elsewhere it is whole."""

import json
import re
import subprocess

from mleaktest import Case, number, parse_tree
from terminaltest import see_on_terminal

LIMIT = 100  # lines, on a terminal of 24


class TerminalLimitTest(Case):
    def setUp(self):
        super().setUp()
        for words in (["init", "-q", "."], ["config", "user.email", "a@b"], ["config", "user.name", "a"],
                      ["commit", "-q", "--allow-empty", "-m", "one"]):
            subprocess.run(["git", *words], cwd=self.dir, check=True)
        self.trace, _ = self.record("git", "log", "--stat", options=("--backend=preload",))

    def seen(self, *args, **options):
        return see_on_terminal(self, "report", "--color=never", *args, self.trace, **options)

    def test_the_heaviest_lines_of_a_tree_are_there_and_the_others_counted(self):
        whole, seen = parse_tree(self.report(self.trace)), self.seen()
        shown = parse_tree(seen)
        self.assertGreater(len(whole), LIMIT)
        self.assertEqual(len(shown), LIMIT)
        self.assertEqual(sorted((node.bytes for node in whole), reverse=True)[:LIMIT],
                         sorted((node.bytes for node in shown), reverse=True))
        line, = re.findall(r"(?m)^left out: ([\d,]+) lines of the tree with [\d,]+ blocks?, [\d,]+ "
                           r"bytes; --no-limit shows all$", seen)
        self.assertEqual(number(line), len(whole) - LIMIT)
        outstanding = json.loads(self.report(self.trace, "--format=json"))["totals"]["outstanding"]
        self.assertIn("{:,} bytes".format(outstanding["bytes"]), seen)

    def test_all_is_there_if_wanted_and_where_it_is_no_terminal(self):
        whole = self.report(self.trace)
        self.assertNotIn("--no-limit", whole)
        self.assertEqual(self.seen("--no-limit"), whole)
        self.assertEqual(self.seen("--top=30"), self.report(self.trace, "--top=30"))
        self.assertEqual(self.seen(rows=1000), whole)
        self.assertNotIn("--no-limit", self.seen("--format=json"))

    def test_lists_and_tables(self):
        for args, row in ((["--flat"], r"\d bytes? in \d"), (["--growth"], r"^\w+ +[\d,]+ +[\d,]+ .*%"),
                          (["--by", "function"], r"^ *[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+  \S")):
            with self.subTest(args=args):
                whole, seen = self.report(self.trace, *args), self.seen(*args)
                count = lambda text: len(re.findall(row, text, re.M))
                if count(whole) == count(seen):
                    self.assertNotIn("--no-limit", seen)
                    continue
                self.assertIn("; --no-limit shows all\n", seen)
                self.assertLess(len(seen.splitlines()), 2 * LIMIT)
                self.assertGreater(count(seen), 0)
