"""A free that waits for the thread's next allocation is not forgotten where none comes."""

import os
import re

from mleaktest import needs_bpf, parse_totals, read_line
from test_filters import FilterCase  # says where loadtest is
import loadtest


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

    def test_another_process_allocates_when_the_recording_ends(self):
        """Its allocations behind the end are not recorded; what this one kept since long is."""
        busy = self.spawn([loadtest.program(), "0", "20", "1"], stdin=-1)
        self.assertEqual(read_line(busy), "ready")
        for _ in range(4):
            target = self.spawn(["./target"], stdin=-1)
            self.tell(target, "0 tid 0")
            mleak, trace = self.attach(target, "-p", str(busy.pid))
            busy.stdin.write(b"\n")
            self.tell(target, "0 keep 23 47")
            self.tell(target, "0 drop 11")
            mleak.terminate()
            self.assertEqual(self.finish(mleak).status, 0)
            dump = self.report(trace, "--dump")
            # The other one may fill the ring when the recorder gets no CPU.
            if parse_totals(self.report(trace)).lost == 0:
                self.assertEqual(len(re.findall(r"^  FREE flags \S+, tgid %d," % target.pid, dump, re.M)),
                                 11)
            self.finish(target)
            os.remove(trace)
        busy.kill()
        busy.wait()


if __name__ == "__main__":
    import unittest
    unittest.main()
