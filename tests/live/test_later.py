"""A delay between an allocation and its unwinding changes no frame: here the recorder sleeps."""

import os
import shutil
import signal
import time

from backends import both_backends, by_bpf_alone
from mleaktest import LONG, Case, parse_truths

WEEK_SECONDS = 7 * 24 * 3600


@both_backends
class LaterTest(Case):
    def record_asleep(self):
        """Record backtrace by a recorder that is stopped from before its start until 500 ms after
        its end; returns the trace and what libgcc said."""
        trace, out = self.path("x.mlk"), self.path("out")
        script = "kill -STOP $PPID; exec '%s' > '%s'" % (self.sample("backtrace"), out)
        recorder = self.start_mleak("record", "-o", trace, "--", "sh", "-c", script)
        end = time.monotonic() + LONG
        while not self.ended_all(out):
            self.assertLess(time.monotonic(), end, "the sample did not end")
            time.sleep(0.01)
        # A thread of it that waits in the kernel stops only when that is over.
        while self.state(recorder.pid) != "T":
            self.assertLess(time.monotonic(), end, "the recorder was not stopped")
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(recorder.pid, signal.SIGCONT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        with open(out) as text:
            return trace, parse_truths(text.read())

    def ended_all(self, out):
        """Whether the sample printed its last truth."""
        if not os.path.exists(out):
            return False
        with open(out) as text:
            return text.read().count("truth:") >= 8

    def state(self, pid):
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rpartition(")")[2].split()[0]

    # Of a preloaded program the recorder reads the mappings while it is there.
    @by_bpf_alone
    def test_frames_are_libgccs_when_the_recorder_sleeps_500_ms(self):
        trace, truths = self.record_asleep()
        self.assertGreaterEqual(len(truths), 8)
        self.assert_truths(self.report(trace, "--format=folded", "--addresses"), truths)

    def test_frames_are_the_same_a_week_later_with_the_program_gone(self):
        trace, out = self.record(self.sample("backtrace"))
        at_once = self.report(trace, "--format=folded", "--addresses")
        self.assert_truths(at_once, parse_truths(out))
        old = self.path("old.mlk")
        shutil.move(trace, old)
        for name in os.listdir(self.dir):
            if name != "old.mlk":
                os.unlink(self.path(name))
        before = time.time() - WEEK_SECONDS
        os.utime(old, (before, before))
        self.assertEqual(self.report(old, "--format=folded", "--addresses"), at_once)
