"""A short form of tests/fuzz/mutate_traces.py, always the same; `make fuzz` runs it for longer."""

import glob
import os
import shutil
import sys

from mleaktest import MLEAK_FAST, TESTS, Case

sys.path.insert(0, os.path.join(TESTS, "fuzz"))
import mutate_traces

RUNS = 60


class MutatedTracesTest(Case):
    program = MLEAK_FAST  # sanitizers take more memory than the budget

    def test_none_crashes_or_takes_more_than_its_budget(self):
        traces = sorted(glob.glob(os.path.join(TESTS, "golden", "*.mlk")))
        self.assertGreaterEqual(len(traces), 3)
        unwound = self.path("unwound.mlk")
        self.assertEqual(self.mleak("unwind", "-q", "-o", unwound, traces[-1]).status, 0)
        said = []
        done, failed = mutate_traces.run(self.program, traces + [unwound], "test", runs=RUNS,
                                         keep=self.path("found"), tell=said.append)
        self.assertEqual((done, failed), (RUNS, 0), said)

    def test_what_is_wrong_is_found(self):
        for script, wrong in (("kill -SEGV $$", "exit status -11"), ("exit 1", "exit status 1"),
                              ("exit 2", "without a word"),
                              ("echo 'x.c:1: runtime error: y' >&2", "runtime error")):
            self.assertIn(wrong, mutate_traces.fault(["/bin/sh", "-c", script]))
        self.assertRegex(mutate_traces.fault([sys.executable, "-c", "b'x' * %d" %
                                              (mutate_traces.MEMORY + 8 * mutate_traces.MIB)]),
                         r"takes \d+ MiB")
        self.assertIsNone(mutate_traces.fault([shutil.which("true")]))
