"""Nothing is lost at rates that programs have; and what is lost is accounted for, to the event.

MLEAK_LOAD_SECONDS says for how long each load runs, 2 s unless set; `make acceptance` sets it to 30.
"""

import os

from loadtest import Load, LoadCase
from mleaktest import needs_bpf

SECONDS = float(os.environ.get("MLEAK_LOAD_SECONDS") or 2)


@needs_bpf
class LoadTest(LoadCase):
    RUNS = 3  # of which one is to be right: for a while a machine may give the recorder no CPU

    def check(self, load, pause=0, whole=False):
        """Nothing is lost at @load, and with @whole no stack is cut; what the target did, and the trace."""
        for _ in range(self.RUNS):
            truth, trace, _ = self.record_load(load, pause=pause)
            self.assertGreater(truth["leaks"], 0)
            self.assertGreater(truth["restores"], 0)
            if load.rate:
                self.assertGreaterEqual(truth["allocs"], load.rate * load.seconds)
            seen = self.read_events(trace)
            self.assert_accounted(truth, seen)
            if not sum(seen.dropped.values()) and not (whole and seen.degraded):
                break
        self.assert_nothing_lost(truth, seen, trace)
        if whole:
            self.assertEqual(seen.degraded, 0)
        return truth, seen

    def test_nothing_lost_at_1000(self):
        self.check(Load(1000, SECONDS), whole=True)

    def test_nothing_lost_at_10000(self):
        self.check(Load(10000, SECONDS), whole=True)

    def test_nothing_lost_at_100000(self):
        self.check(Load(100000, SECONDS))

    def test_nothing_lost_at_100000_by_4_threads(self):
        self.check(Load(100000, SECONDS, 4))

    def test_nothing_lost_while_the_recorder_stands_still(self):
        truth, seen = self.check(Load(100000, SECONDS), pause=0.5)
        # At half that rate, on a slow machine, the ring may hold all stacks of the while.
        if truth["allocs"] * 1000 > 90000 * truth["milliseconds"]:
            self.assertGreater(seen.degraded, 0)


@needs_bpf
class SmallRingTest(LoadCase):
    """A ring of 64 KiB, and a recorder that stands still: losses there must be."""

    def check(self, load):
        truth, trace, err = self.record_load(load, ["--ring-size", "64K"], pause=0.5)
        seen = self.read_events(trace)
        self.assert_accounted(truth, seen)
        self.assertGreater(sum(seen.dropped.values()), 0, "nothing was lost: no test at all")
        self.assertRegex(err, "lost")
        return self.assert_no_false_leak_unmarked(trace)

    def test_accounts_are_exact(self):
        self.check(Load(20000, SECONDS))

    def test_accounts_are_exact_with_4_threads(self):
        self.check(Load(20000, SECONDS, 4))
