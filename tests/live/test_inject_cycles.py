"""Code is put into a process under load and taken out again, many times, and recorders are killed while they
do it: the process lives, all its blocks hold what they should, and in the end it is as it was.

MLEAK_INJECT_CYCLES=N and MLEAK_INJECT_KILLS=N say how often.
"""

import os
import random
import re
import signal
import time

from injecttest import KINDS, PATH, InjectCase, State, ours_in
from mleaktest import descendants, parse_totals, wait_until

CYCLES = int(os.environ.get("MLEAK_INJECT_CYCLES", "10"))
KILLS = int(os.environ.get("MLEAK_INJECT_KILLS", "15"))
LATEST_MS = 400  # after a recorder's start


class CyclesTest(InjectCase):
    def check_cycles(self, kind):
        target = self.start_target(kind)
        state = State(target.pid)
        target.go()
        for i in range(CYCLES):
            with self.subTest(cycle=i):
                said = self.record_for(target.pid, "%dms" % random.randrange(1, 60))
                self.assertIn(" 0 lost", said)
                target.check()
                self.assertEqual(ours_in(target.pid), [])
        target.pause()
        self.assert_unchanged(target.pid, state)
        target.end()

    def test_all_mappings_are_what_they_were(self):
        """Of a process that rests, not one of its own is new."""
        target = self.start_target()
        target.pause()
        state = State(target.pid)
        for _ in range(CYCLES):
            self.record_for(target.pid, "1ms")
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()

    def test_many_threads(self):
        target = self.start_target(threads=64)
        target.go()
        state = State(target.pid)
        said = self.record_for(target.pid, "100ms")
        stopped = re.search(r"all 65 threads were stopped \d+ times, for ([\d.]+) ms at most", said)
        self.assertTrue(stopped, said)
        print("64 threads were stopped for %s ms" % stopped[1])
        self.assert_unchanged(target.pid, state)
        target.end()


class KilledTest(InjectCase):
    def kill(self, mleak, helper):
        """End the recorder, and what it has started if @helper, as nobody can prevent."""
        pids = descendants(mleak.pid) if helper else []
        mleak.kill()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.finish(mleak)

    def assert_next_one_cleans(self, target, state):
        """The next recorder finds all that was left, and records as if nothing had been."""
        mleak = self.attach(target.pid)
        before = target.leak()[1]
        leaked = target.leak()[1] - before
        target.check()
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH), 2 * leaked)
        self.assertEqual(parse_totals(self.report(self.path("x.mlk"))).lost, 0)
        self.assert_unchanged(target.pid, state)

    def check_kills(self, kind, kill):
        target = self.start_target(kind)
        state = State(target.pid)
        target.go()
        left = 0
        for i in range(KILLS):
            with self.subTest(kill=i):
                kill(target, i % 2 == 1)
                target.check()
                left += bool(ours_in(target.pid))
        print("%s: after %d of %d kills something was left" % (kind, left, KILLS))
        self.assert_next_one_cleans(target, state)
        target.end()

    def test_the_helper_alone(self):
        """The recorder, without privileges, says so; as root it had left these to its helper."""
        if os.geteuid():
            self.skipTest("needs root")
        target = self.start_target()
        state = State(target.pid)
        target.go()
        for _ in range(20):
            mleak = self.attach(target.pid)
            for pid in descendants(mleak.pid):
                os.kill(pid, signal.SIGKILL)
            mleak.send_signal(signal.SIGINT)
            result = self.finish(mleak)
            self.assertEqual(result.status, 0, result.err)
            # one that was killed before it had begun is done without
            if "cannot start a helper process" not in result.err:
                break
        self.assertIn("mleak: warning: what was put into process %d stays there and does nothing: it cannot be "
                      "reached: mleak's helper process has ended (signal 9)\n" % target.pid, result.err)
        target.check()
        self.assert_next_one_cleans(target, state)
        target.end()

    def kill_at_any_time(self, target, helper):
        mleak = self.start_inject(target.pid)
        time.sleep(random.uniform(0, LATEST_MS / 1000))
        self.kill(mleak, helper)

    def kill_while_it_leaves(self, target, helper):
        mleak = self.start_inject(target.pid)
        wait_until(lambda: ours_in(target.pid) or mleak.poll() is not None, "nothing is put there")
        time.sleep(random.uniform(0, 0.1))
        mleak.send_signal(signal.SIGINT)
        time.sleep(random.uniform(0, 0.05))
        self.kill(mleak, helper)

    def test_at_any_time(self):
        self.check_kills("glibc", self.kill_at_any_time)

    def test_while_it_leaves(self):
        self.check_kills("glibc", self.kill_while_it_leaves)

    def test_at_any_time_static(self):
        self.check_kills("musl-static", self.kill_at_any_time)

    def test_at_any_time_jemalloc(self):
        self.check_kills("jemalloc", self.kill_at_any_time)


def cycles(kind):
    return lambda self: self.check_cycles(kind)


for name in KINDS:
    setattr(CyclesTest, "test_" + name.replace("-", "_"), cycles(name))
