"""When the pointers are read: on request, and when a command comes to its end, as LeakSanitizer does."""

import collections
import os
import re
import signal
import subprocess
import unittest

from backends import both_backends
from mleaktest import TESTS, read_line, wait_until
from reachtest import ReachCase
from test_reach_outside import told_by


@both_backends
class OnRequestTest(ReachCase):
    def test_ctl_has_the_memory_read(self):
        stay, end = os.pipe()
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "--reach", "--passes", "3", "-o", trace, "--", self.build("reach_mover"),
                                  "4001", "1009", "100", stdin=stay)
        os.close(stay)
        self.assertEqual(read_line(record), "ready")
        self.assertEqual(self.read_so_far(record), 0)
        asked = self.mleak("ctl", str(record.pid), "--reach", **self.user())
        self.assertEqual((asked.status, asked.out, asked.err), (0, "", ""))
        wait_until(lambda: self.read_so_far(record) == 1, "the memory was read")
        os.close(end)
        self.assertEqual(self.finish(record).status, 0)
        passes = [line for line in self.report(trace, "--dump").splitlines() if line.startswith("  PASS ")]
        snapshots = [re.search(r"snapshot (\d+), flags (0x\d)", line).groups() for line in passes]
        # three passes by request, or up to ten as pointers move, and one when the command came to its end
        self.assertEqual(snapshots[-2:], [("1", "0x4"), ("2", "0x5")])
        self.assertEqual(set(snapshots[:-2]), {("1", "0x0")})
        self.assertTrue(4 <= len(snapshots) <= 11, snapshots)

    def test_a_recording_without_it_refuses(self):
        record = self.start_mleak("record", "-o", self.path("x.mlk"), "--", "sleep", "1000")
        wait_until(lambda: self.mleak("ctl", str(record.pid), **self.user()).status == 0, "it listens")
        asked = self.mleak("ctl", str(record.pid), "--reach", **self.user())
        self.assertEqual(asked.status, 2)
        self.assertIn("record with --reach", asked.err)

    def test_seldom_enough_takes_a_tenth_of_the_time(self):
        stay, end = os.pipe()
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "--reach=10ms,spare", "-o", trace, "--", self.build("reach_mover"),
                                  "4001", "1009", "100", stdin=stay)
        os.close(stay)
        self.assertEqual(read_line(record), "ready")
        wait_until(lambda: self.read_so_far(record) >= 3, "the memory is not read again")
        os.close(end)
        self.assertEqual(self.finish(record).status, 0)
        times = collections.defaultdict(list)
        for line in self.report(trace, "--dump").splitlines():
            if found := re.search(r"^  PASS .* snapshot (\d+), .* time (\d+) to (\d+),", line):
                times[int(found[1])] += map(int, found.groups()[1:])
        # the last one is of the end
        for before, after in ((1, 2), (2, 3)):
            took = max(times[before]) - min(times[before])
            self.assertGreaterEqual(min(times[after]) - max(times[before]), 9 * took)

    def user(self):
        return getattr(self, "recorded_as", {})

    def read_so_far(self, record):
        """How often the memory was read, as the recorder says."""
        return int(re.search(r"(?m)^memory read +(\d+)", self.mleak("ctl", str(record.pid), **self.user()).out)
                   .group(1))


@both_backends
class AtExitTest(ReachCase):
    def at_exit(self, *argv, options=(), status=0):
        """The trace of a command that ends by itself, and what it said before."""
        trace = self.path("x.mlk")
        record = self.finish(self.start_mleak("record", "--reach", *options, "-o", trace, "--", *argv))
        self.assertEqual(record.status, status, record.err)
        self.assertNotIn("not read", record.err)
        return trace, [line for line in record.out.splitlines() if line != "ready"]

    def assert_told(self, trace, told):
        self.assertEqual(sorted(self.found(trace, {shape for shape, _ in told}).items()), sorted(told.items()))

    def test_each_shape_has_its_verdict(self):
        trace, said = self.at_exit(self.build("reach_exit"))
        self.assert_told(trace, told_by(said))
        head = self.report(trace)
        self.assertRegex(head, r"\(1 pass, stopped\):")
        self.assertNotIn("single pass", head)

    def test_whatever_ends_it(self):
        program = self.build("reach_exit")
        for how, status in (("_exit", 3), ("abort", -signal.SIGABRT), ("thread", 5), ("exec", 0)):
            with self.subTest(how):
                trace, said = self.at_exit(program, how, status=status)
                self.assert_told(trace, told_by(said))

    def test_leak_sanitizer_says_the_same(self):
        source = os.path.join(TESTS, "live", "reach_exit.c")
        checked = self.path("checked")
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-fsanitize=leak",
                                        "-o", checked, source]))
        if built.status:
            self.skipTest("gcc has no LeakSanitizer here: install liblsan0")
        environment = {**os.environ, "LSAN_OPTIONS": "exitcode=23:fast_unwind_on_malloc=0"}
        run = self.finish(self.spawn([checked], env=environment))
        if "LeakSanitizer has encountered a fatal error" in run.err:
            self.skipTest("LeakSanitizer may not trace here")
        self.assertEqual(run.status, 23, run.err)
        theirs = collections.Counter()
        for kind, objects, frames in re.findall(
                r"(Direct|Indirect) leak of \d+ byte\(s\) in (\d+) object\(s\) allocated from:\n((?: +#.*\n)+)",
                run.err):
            shape = re.search(r" in ((?:lost|held)_\w+)", frames)
            self.assertIsNotNone(shape, frames)
            theirs[shape.group(1), "lost" if kind == "Direct" else "lost-with"] += int(objects)
        trace, said = self.at_exit(self.build("reach_exit"))
        found = self.found(trace, {shape for shape, _ in told_by(said)})
        ours = {key: blocks for key, blocks in found.items() if key[1] in ("lost", "lost-with")}
        self.assertEqual(sorted(ours.items()), sorted(theirs.items()))

    def test_signals_come_through_as_without(self):
        trace = self.path("x.mlk")
        script = "trap 'echo got; exit 7' USR1; echo $$; while :; do sleep 0.01; done"
        record = self.start_mleak("record", "--reach", "-o", trace, "--", "bash", "-c", script)
        shell = int(read_line(record))
        os.kill(shell, signal.SIGUSR1)
        result = self.finish(record)
        self.assertEqual((result.status, result.out), (7, "got\n"), result.err)
