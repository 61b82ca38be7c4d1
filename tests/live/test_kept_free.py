"""A free that waits for the thread's next allocation is not forgotten where none comes."""

import re

from mleaktest import needs_bpf, parse_totals
from test_filters import FilterCase


@needs_bpf
class KeptFreeTest(FilterCase):
    def frees(self, trace):
        return len(re.findall(r"^  FREE flags ", self.report(trace, "--dump"), re.M))

    def assert_left(self, trace, size):
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        self.assertEqual(totals.outstanding.bytes, size)
        self.assert_no_unknown_free(trace)

    def test_the_last_thing_before_the_probes_go_is_a_free(self):
        target, mleak, trace = self.attach_to_target()
        self.tell(target, "0 keep 23 47")
        self.tell(target, "0 drop 11")
        mleak.terminate()
        self.assertEqual(self.finish(mleak).status, 0)
        self.finish(target)
        self.assertEqual(self.frees(trace), 11)
        self.assert_left(trace, 12 * 47)

    def test_the_last_thing_before_the_end_is_a_free(self):
        trace, counts = self.run_target((), "0 keep 23 47", "0 drop 11")
        self.assertEqual(counts["frees"], 11)
        self.assert_left(trace, 12 * 47)

    def test_the_last_thing_before_a_fork_is_a_free(self):
        trace, _ = self.run_target(("--follow",), "0 keep 7 61", "0 drop 1", "0 fork 2")
        self.assert_left(trace, 6 * 61 + 7 * 177)  # of the copy only what it allocated

    def test_the_last_thing_before_an_exec_is_a_free(self):
        trace, _ = self.run_target((), "0 keep 7 61", "0 drop 1", "0 exec 5")
        self.assertEqual(self.frees(trace), 1 + 5)
        self.assert_left(trace, 0)

    def test_the_last_thing_before_another_thread_is_a_free(self):
        trace, counts = self.run_target((), "0 keep 7 61", "0 drop 1", "1 keep 5 61", "0 drop 3")
        self.assertEqual(self.frees(trace), counts["frees"])
        self.assert_no_unknown_free(trace)


if __name__ == "__main__":
    import unittest
    unittest.main()
