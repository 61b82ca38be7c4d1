"""`mleak report` on a terminal: colours and the pager; and neither elsewhere."""

import os
import re

from mleaktest import TESTS, Case
from terminaltest import see_on_terminal

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
OTHER = os.path.join(TESTS, "golden", "v1.3-overrun.mlk")
SEQUENCE = "\x1b\\[[0-9;]*m"


class ReportTerminalTest(Case):
    def on_terminal(self, *args, **options):
        """What a terminal gets to see of a report, and of what is said beside it if so wanted."""
        return see_on_terminal(self, "report", *args, TRACE, **options)

    def test_colours_change_nothing_else(self):
        for args in [], ["--flat"], ["--by", "function"], ["-n", "1"], ["--growth"], ["--by", "size"]:
            with self.subTest(args=args):
                plain = self.report(TRACE, *args)
                self.assertNotIn("\x1b", plain)
                colored = self.report(TRACE, "--color=always", *args)
                self.assertEqual(re.sub(SEQUENCE, "", colored), plain)
        self.assertIn("\x1b[", self.report(TRACE, "--color=always"))

    def test_every_colour_ends_on_its_line(self):
        for args in [], ["--flat"], ["--growth"], ["--by", "module"]:
            for line in self.report(TRACE, "--color=always", *args).splitlines():
                found = re.findall(SEQUENCE, line)
                self.assertTrue(not found or found[-1] == "\x1b[0m", repr(line))

    def test_colours_on_a_terminal_only_and_not_if_told_so(self):
        self.assertIn("\x1b[", self.on_terminal())
        self.assertNotIn("\x1b[", self.on_terminal(NO_COLOR="1"))
        self.assertIn("\x1b[", self.on_terminal(NO_COLOR=""))
        self.assertNotIn("\x1b[", self.on_terminal(TERM="dumb"))
        self.assertNotIn("\x1b[", self.on_terminal("--color=never"))
        self.assertIn("\x1b[", self.on_terminal("--color=always", NO_COLOR="1"))

    def test_no_format_for_programs_has_colours(self):
        for name in "folded", "json", "csv", "html", "speedscope", "heaptrack":
            self.assertEqual(self.report(TRACE, "--color=always", "--format=" + name),
                             self.report(TRACE, "--format=" + name))

    def test_lines_are_of_utf8_on_a_terminal_that_knows_it_and_if_told_so(self):
        plain = self.report(TRACE)
        drawn = self.report(TRACE, "--lines=utf-8")
        self.assertRegex(plain, r"(?m)^ .*\|- .*\n(.*\|  .*\n)+.*`- ")
        self.assertRegex(drawn, "(?m)^ .*\u251c\u2500 .*\n(.*\u2502  .*\n)+.*\u2514\u2500 ")
        ascii_of = str.maketrans({"\u251c": "|", "\u2500": "-", "\u2502": "|", "\u2514": "`"})
        self.assertEqual(drawn.translate(ascii_of), plain)
        for expected, args, env in ((drawn, [], {"LC_ALL": "C.UTF-8"}),
                                    (drawn, [], {"LC_ALL": "", "LC_CTYPE": "", "LANG": "de_DE.utf8"}),
                                    (plain, [], {"LC_ALL": "C", "LANG": "C.UTF-8"}),
                                    (plain, ["--lines=ascii"], {"LC_ALL": "C.UTF-8"})):
            self.assertEqual(self.on_terminal("--color=never", *args, **env), expected)
        result = self.mleak("report", TRACE, env=dict(os.environ, LC_ALL="C.UTF-8"))
        self.assertEqual(result.out, plain)

    def test_a_pager_on_a_terminal_gets_all(self):
        seen = self.on_terminal("--color=never", MLEAK_PAGER="sed s/^/paged:/", PAGER="false")
        self.assertEqual(seen, re.sub("(?m)^(?=.|\n)", "paged:", self.report(TRACE)))
        self.assertIn("paged:", self.on_terminal(PAGER="sed s/^/paged:/"))

    def test_no_pager_if_told_so_or_for_programs(self):
        pager = {"PAGER": "sed s/^/paged:/"}
        self.assertNotIn("paged:", self.on_terminal("--no-pager", **pager))
        self.assertNotIn("paged:", self.on_terminal("--format=json", **pager))
        self.assertNotIn("paged:", self.on_terminal(MLEAK_PAGER="", **pager))
        result = self.mleak("report", TRACE, env=dict(os.environ, **pager))
        self.assertNotIn("paged:", result.out)

    def test_a_pager_that_ends_early_is_a_quiet_end(self):
        seen = self.on_terminal("--by", "function", PAGER="head -n 1")
        self.assertEqual(len(seen.splitlines()), 1)

    def test_a_pager_that_cannot_be_run_loses_nothing(self):
        not_executable = self.write("pager", b"")
        for pager in "/nonexist", "nonexist -R", not_executable, "exec /nonexist":
            with self.subTest(pager=pager):
                seen = self.on_terminal("--color=never", with_stderr=True, PAGER=pager)
                self.assertTrue(seen.endswith("shown without it\n" + self.report(TRACE)), seen)
                self.assertEqual(seen.count("warning"), 1)
                self.assertIn("warning: cannot run the pager '%s'" % pager, seen)
        self.on_terminal("--fail-on-leak", PAGER="/nonexist", status=1)

    def test_the_status_is_the_report_s(self):
        self.on_terminal("--fail-on-leak", PAGER="sed s/^/paged:/", status=1)

    def test_less_leaves_when_the_report_fits(self):
        seen = self.on_terminal("-n", "1", "--color=never", MLEAK_PAGER="less")
        self.assertIn("left out: 3 lighter stacks", seen)

    def test_a_timeline_is_as_wide_as_the_terminal(self):
        for columns, bar in (60, 14), (80, 34), (200, 154), (20, 10), (0, 50):
            for pager in "cat", "sed s/x/x/":
                seen = self.on_terminal("--timeline", columns=columns, PAGER=pager)
                bars = re.findall(r"(?m)^.* s .*?(#+)$", seen)
                self.assertEqual(max(map(len, bars)), bar)
                if columns >= 60:
                    self.assertEqual(max(len(line) for line in seen.splitlines() if "#" in line), columns)

    def test_a_difference_has_colours(self):
        plain = self.mleak("diff", TRACE, OTHER).out
        colored = self.mleak("diff", "--color=always", TRACE, OTHER).out
        self.assertEqual(re.sub(SEQUENCE, "", colored), plain)
        self.assertRegex(colored, r"(?m)^\x1b\[1;31mnew .*\x1b\[0m$")
