"""`mleak report` with filters: what it says of them, and of those that nothing matches."""

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
            for more in [], ["--folded"], ["--format=json"], ["--growth"], ["--fail-on-leak"]:
                with self.subTest(args=args, more=more):
                    warning = self.warned(*args, *more)
                    self.assert_one_message(warning, naming="'%s'" % args[1])
                    self.assertRegex(warning, "^mleak: warning: no .*" + word)
        self.assertEqual(len(self.warned("--thread", "x*", "--function", "x{9}").splitlines()), 2)

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
