"""`mleak report` with filters: what it says of them, and of those that nothing matches."""

import json
import os

from mleaktest import TESTS, Case

# One thread, cxx with the number 24331, in the function main of the program cxx.
TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")


class ReportChoiceTest(Case):
    def warned(self, *args):
        """What stderr says, of a report that is made."""
        result = self.mleak("report", *args, TRACE)
        self.assertEqual(result.status, 0)
        return result.err

    def test_a_filter_that_nothing_in_the_trace_matches_is_told_of(self):
        for args, word in ((["--thread", "nosuch"], "thread"), (["--thread", "-1"], "thread"),
                           (["--thread", "5"], "thread"), (["--module", "nosuch"], "library"),
                           (["--function", "nosuch"], "function")):
            for more in [], ["--folded"], ["--format=json"], ["--growth"]:
                with self.subTest(args=args, more=more):
                    warning = self.warned(*args, *more)
                    self.assert_one_message(warning, naming="'%s'" % args[1])
                    self.assertRegex(warning, "^mleak: warning: no .*" + word)
        self.assertEqual(len(self.warned("--thread", "x*", "--function", "x{9}").splitlines()), 2)

    def test_verdicts_that_the_trace_or_the_format_does_not_have(self):
        """Nothing tells of the pointers in memory there: that is not left without a word."""
        for args, naming in ((["--start-pointers-only"], "record it with --reach"),
                             (["--start-pointers-only", "--lost"], "record it with --reach"),
                             (["--verdict", "held", "--folded"], "record it with --reach"),
                             (["--start-pointers-only", "--folded"], "give --lost or --verdict, too"),
                             (["--start-pointers-only", "--dump"], "give --lost or --verdict, too"),
                             (["--root", "environ"], "record it with --reach"),
                             (["--root=0x1000-0x2000", "--folded"], "give --lost or --verdict, too")):
            result = self.mleak("report", *args, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming=naming)

    def test_roots_that_are_neither_a_range_nor_a_name(self):
        for root in "", "0x1000", "0x1000-", "0x2000-0x1000", "0x1000-0x1000", "4096-0x20zz", "0x1-0x2-0x3", "7up":
            for command in ["report", "--lost", TRACE], ["why", TRACE], ["reach", "1"]:
                with self.subTest(root=root, command=command):
                    result = self.mleak(*command, "--root=" + root)
                    self.assertEqual((result.status, result.out), (2, ""))
                    self.assert_one_message(result.err, naming="--root wants a range of addresses")

    def test_a_filter_that_something_matches_is_not_told_of(self):
        for args in (["--thread", "cxx"], ["--thread", "24331"], ["--thread", "c*"],
                     ["--module", "libc.so*"], ["--function", "^main$"],
                     # of these nothing is shown
                     ["--thread", "cxx", "--older", "1h"], ["--module", "libgcc_s*"],
                     ["--function", "^main$", "--min-bytes", "1G"],
                     # all blocks of which were freed
                     ["--function", "churn"]):
            with self.subTest(args=args):
                self.assertEqual(self.warned(*args), "")

    def test_of_a_moment_it_tells_what_came_before(self):
        self.assert_one_message(self.warned("--function", "^main$", "--at", "0"),
                                naming="up to that moment")

    def test_of_a_difference_it_is_told_when_neither_side_matches(self):
        result = self.mleak("diff", "--function", "nosuch", TRACE, TRACE)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="'nosuch'")

    def test_names_are_not_looked_for_among_addresses(self):
        result = self.mleak("report", "--addresses", "--function", "main", TRACE)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="--addresses")

    def test_a_debug_directory_is_to_be_there(self):
        for path in self.path("none"), TRACE:
            result = self.mleak("report", "--debug-dir", path, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--debug-dir")

    def shown(self, text):
        """The lines of the head that say what is shown."""
        head = text.split("\n\n")[0]
        return [line.split(None, 1)[1] for line in head.splitlines() if line.startswith("  shown ")]

    def test_a_report_says_of_which_moment_and_filter_it_is(self):
        for args, said, members in (
                (["--at", "0.2"], "blocks outstanding at 0.2 s", {"at_ns": 200000000}),
                (["--between", "0.1,0.25"], "blocks given out between 0.1 s and 0.25 s",
                 {"given_from_ns": 100000000, "at_ns": 250000000}),
                (["--older", "500ms"], "blocks at least 0.5 s old", {"older_ns": 500000000}),
                (["--thread", "c*", "--pid", "24331"], "blocks of process 24331, by thread 'c*'",
                 {"thread": "c*", "pid": 24331}),
                (["--module", "cxx", "--function", "^main$"],
                 "blocks from stacks through module 'cxx', from stacks through function '^main$'",
                 {"module": "cxx", "function": "^main$"}),
                (["--min-bytes", "2K", "--min-blocks", "1"],
                 "blocks from stacks with at least 2,048 bytes, from stacks with at least 1 block",
                 {"min_bytes": 2048, "min_blocks": 1}),
                (["--at", "0.2", "--thread", "cxx"], "blocks outstanding at 0.2 s by thread 'cxx'",
                 {"at_ns": 200000000, "thread": "cxx"})):
            with self.subTest(args=args):
                for view in [], ["--flat"], ["--growth"], ["--timeline"], ["--by", "size"]:
                    self.assertEqual(self.shown(self.report(TRACE, *args, *view)), [said])
                shown = json.loads(self.report(TRACE, "--format=json", *args))["shown"]
                self.assertEqual(shown, {"text": said, **members})
                self.assertIn('"shown":"%s"' % said, self.report(TRACE, "--format=html", *args))
                result = self.mleak("diff", *args, TRACE, TRACE)
                self.assertEqual(self.shown(result.out), [said])
                result = self.mleak("diff", "--format=json", *args, TRACE, TRACE)
                self.assertEqual(json.loads(result.out)["shown"], shown)

    def test_a_report_of_all_says_nothing_of_that(self):
        self.assertEqual(self.shown(self.report(TRACE)), [])
        self.assertEqual(json.loads(self.report(TRACE, "--format=json"))["shown"], {})

    def test_what_is_typed_does_nothing_to_the_terminal(self):
        result = self.mleak("report", "--thread", "\x1b[31m", TRACE)
        self.assertNotIn("\x1b", result.out + result.err)

    def test_a_moment_after_the_end_is_told_of(self):
        for args in ["--at", "1000h"], ["--between", "0,1000h"]:
            self.assert_one_message(self.warned(*args), naming="ended after 0.439 s")
        self.assertEqual(self.warned("--at", "0.43"), "")
