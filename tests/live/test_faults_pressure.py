"""A recorder that cannot keep up loses events: each is accounted for, and no block that was freed
passes for a leak without a mark."""

import re
import signal
import time

from faulttest import FaultCase
from mleaktest import LONG, needs_bpf, number, parse_totals


@needs_bpf
class PressureTest(FaultCase):
    def options(self):
        """A small ring where it can be had: pairs are made until it overflows in either case."""
        if "--ring-size" in self.mleak("record", "--help").out:
            return ("--ring-size", "64K"), 3000
        return (), 60000

    def wait_for_losses(self):
        end = time.monotonic() + LONG
        while not re.search(r"^  LOSSES.* frees [1-9]", self.dump(), re.M):
            self.assertLess(time.monotonic(), end, "no free was lost")
            time.sleep(0.1)

    def record_under_pressure(self):
        options, pairs = self.options()
        target = self.start(self.compile("target"))
        mleak = self.attach(target.pid, *options)
        self.tell(target, "early", 100)
        time.sleep(0.4)
        mleak.send_signal(signal.SIGSTOP)
        self.tell(target, "pairs", 5 * pairs)
        self.tell(target, "free", 30)
        mleak.send_signal(signal.SIGCONT)
        self.wait_for_losses()
        time.sleep(0.6)
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
        folded = self.mleak("report", "--folded", self.path("x.mlk"))
        self.assertIn("%d of the outstanding blocks" % number(marked[1]), folded.err)
        self.assertNotIn("suspect", folded.out)
