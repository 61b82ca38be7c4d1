"""Under BPF the stress program's stacks are as complete as inside of it."""

import os
import shutil

from backends import both_backends
from mleaktest import BUILD, MLEAK_FAST, Case, parse_totals


@both_backends
class StressTest(Case):
    program = MLEAK_FAST

    def test_stacks_of_the_stress_program_are_complete_but_those_across_two_stacks(self):
        for part in "stress-O2", "stress_a.so", "stress_b.so":
            shutil.copy(os.path.join(BUILD, "tests", "exact", part), self.dir)
        trace, out = self.record(self.path("stress-O2"), "300")
        self.assertRegex(out, "two libraries at the same address: [1-9]")
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        self.assertGreater(totals.of, 5000)
        # 200 ticks handled on a stack of their own, and as in tests/cli/test_exact.py.
        self.assertGreater(totals.of - totals.complete, 200)
        self.assertLess(totals.of - totals.complete, 300)
