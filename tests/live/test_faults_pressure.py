"""A recorder that cannot keep up loses events: each is accounted for, and no block that was freed
passes for a leak without a mark."""

import re
import signal
import time

from faulttest import FaultCase
from mleaktest import hold, needs_bpf, number, parse_totals, wait_until


@needs_bpf
class PressureTest(FaultCase):
    def options(self):
        """A small ring where it can be had: pairs are made until it overflows in either case."""
        if "--ring-size" in self.mleak("record", "--help").out:
            return ("--ring-size", "64K"), 3000
        return (), 60000

    def wait_for_account(self, truth):
        """Until the recorder has taken in, or counted as lost, all that the target did; frees among the
        latter."""
        def accounted():
            seen, lost = self.seen()
            return lost.frees and (seen.allocs + lost.allocs, seen.frees + lost.frees) == truth

        wait_until(accounted, "no free was lost, or not all is accounted for")

    def record_under_pressure(self):
        options, pairs = self.options()
        target = self.start(self.compile("target"))
        mleak = self.attach(target.pid, *options)
        early = self.tell(target, "early", 100)
        wait_until(lambda: self.seen()[0] == early, "what came before the losses is not recorded")
        hold(mleak)
        self.held_ns = time.monotonic_ns()
        self.tell(target, "pairs", 5 * pairs)
        truth = self.tell(target, "free", 30)
        self.released_ns = time.monotonic_ns()
        mleak.send_signal(signal.SIGCONT)
        self.wait_for_account(truth)
        self.tell(target, "late", 40)
        truth = self.tell(target, "free", 0)
        return truth, self.stop(mleak)

    def node(self, text, name):
        """Blocks at the function @name, below whichever callers, and how many are suspect."""
        lines = re.findall(r"^ *[\d,]+ +([\d,]+)  [ |`-]*%s\b.*?(?:\[suspect: ([\d,]+) of \1\])?$" % name,
                           text, re.M)
        self.assertTrue(lines, text)
        return (sum(number(blocks) for blocks, _ in lines),
                sum(number(suspect or "0") for _, suspect in lines))

    def test_stopped_recorder_marks_what_may_have_been_freed(self):
        truth, said = self.record_under_pressure()
        lost = self.assert_accounted(truth)
        self.assertGreater(lost.frees, 0)
        self.assertRegex(said, r"[1-9]\d* lost")
        result = self.mleak("report", self.path("x.mlk"))
        self.assertEqual(result.status, 0, result.err)
        early, suspect = self.node(result.out, "leak_early")
        self.assertGreaterEqual(early, 70)
        self.assertEqual(early, suspect)
        self.assertEqual(self.node(result.out, "leak_late"), (40, 0))
        outstanding = parse_totals(result.out).outstanding.blocks
        marked = re.search(r"suspect: ([\d,]+) of these blocks \(([\d,]+) bytes\)", result.out)
        self.assertEqual(number(marked[1]), outstanding - 40)
        self.assert_times(result.out)
        folded = self.mleak("report", "--folded", self.path("x.mlk"))
        self.assertIn("%d of the outstanding blocks" % number(marked[1]), folded.err)
        self.assertNotIn("suspect", folded.out)
        # what says it in the text does not say it again
        flat = self.mleak("report", "--flat", self.path("x.mlk"))
        self.assertEqual(flat.err, result.err)
        self.assertIn(marked[0], flat.out)

    def test_stacks_that_were_cut_are_told_of_by_their_cause(self):
        _, said = self.record_under_pressure()
        flags = [int(text, 16) for text in re.findall(r"\n  ALLOC .*\bflags 0x([0-9a-f]+)", self.dump())]
        cut = sum(bool(flag & 8) for flag in flags)  # doc/trace-format.md 4.4
        self.assertGreater(cut, 0)
        self.assertRegex(said, r"(?m)^mleak: warning: %d stacks? (was|were) cut to the first bytes" % cut)
        text = self.mleak("report", self.path("x.mlk")).out
        told = re.search(r"incomplete, cut while the buffer was filling up: ([\d,]+)", text)
        # some are continued by what the thread's stack was before
        self.assertLessEqual(number(told[1]) if told else 0, cut)
        self.assertNotIn("stack bytes end", text)

    def assert_times(self, text):
        """All frees that were lost, by the clock of this test, are within the time that is told."""
        told = re.search(r"frees were lost between ([\d.]+) and ([\d.]+) s: blocks allocated later",
                         text)
        seconds = re.search(r"\), ([\d.]+) s on ", text.splitlines()[0])[1]
        self.assertLessEqual(float(told[2]), float(seconds))
        start_ns = int(re.search(r"monotonic (\d+)", self.dump())[1])
        self.assertLessEqual(start_ns + float(told[1]) * 1e9, self.released_ns)
        self.assertGreaterEqual(start_ns + float(told[2]) * 1e9, self.held_ns)
