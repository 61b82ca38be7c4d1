"""`mleak diff`: what its help offers is what it takes, and nothing else."""

import os
import re

from mleaktest import TESTS, Case

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
VALUES = {"FORMAT": "json", "N": "1", "PID": "24331", "TID|NAME": "cxx", "NAME": "cxx", "REGEX": "main",
          "BYTES": "1", "AGE": "1ms", "TIME": "0.2", "A,B": "0,0.2", "DIR": "/", "WHEN": "never"}


class DiffOptionsTest(Case):
    def options(self, command):
        """Name and argument of each option of the help."""
        return dict(re.findall(r"^ +(?:-\w, )? *--([\w-]+)(?: ([A-Z|,]+))?",
                               self.mleak(command, "--help").out, re.M))

    def test_each_option_of_the_help_is_taken(self):
        suppressions = self.write("none.supp", b"")
        offered = self.options("diff")
        self.assertGreater(len(offered), 20)
        offered.pop("debuginfod")  # it wants to be told of servers
        for name, arg in offered.items():
            with self.subTest(option=name):
                value = suppressions if arg == "FILE" else VALUES[arg] if arg else None
                words = ["--" + name] + ([value] if value else [])
                result = self.mleak("diff", *words, TRACE, TRACE)
                self.assertEqual((result.status, result.err), (0, ""))

    def test_each_other_option_of_a_report_is_refused(self):
        reports = self.options("report")
        others = set(reports) - set(self.options("diff"))
        self.assertTrue({"growth", "timeline", "by", "cost", "addr", "dump", "diff", "flat",
                         "inverted", "temporary"} <= others)
        for name in others:
            with self.subTest(option=name):
                # with its argument, for "--addr" alone is short for --addresses
                word = "--%s=1" % name if reports[name] else "--" + name
                result = self.mleak("diff", word, TRACE, TRACE)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming="mleak diff --help")

    def test_the_help_is_of_a_difference(self):
        text = self.mleak("diff", "--help").out
        self.assertIn("with the largest change", text)
        for word in "pprof", "heaptrack", "speedscope", "flat":
            self.assertNotIn(word, text)
            result = self.mleak("diff", "--format=" + word, TRACE, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
