"""Attach to a server that runs already: what it leaks meanwhile is what the report shows."""

import os
import signal
import time

from forevertest import Forever
from mleaktest import (LONG, Case, Sum, ends_in, kernel_is_at_least, needs_bpf, parse_answers,
                       parse_folded, parse_totals, wait_until)


def probes(pid):
    """Names of the BPF links and perf events that process @pid holds."""
    names = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            name = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        if "bpf_link" in name or "perf_event" in name or "bpf-link" in name:
            names.append(name)
    return sorted(names)


@needs_bpf
class AttachTest(Case):
    def attach(self, target, *options):
        """Start mleak on @target, and wait until its probes are in place: then the trace, a new file,
        gets its name."""
        trace = self.path("x.mlk")
        old = os.stat(trace).st_ino if os.path.exists(trace) else None
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        end = time.monotonic() + LONG
        while not os.path.exists(trace) or os.stat(trace).st_ino == old:
            if mleak.poll() is not None:
                self.fail("mleak ended at once: %s" % (self.finish(mleak),))
            if time.monotonic() > end:
                self.fail("mleak attached nothing")
            time.sleep(0.02)
        self.assertNotEqual(probes(mleak.pid), [])
        return mleak, trace

    def run_for(self, target, seconds):
        """Let the paused @target run until it leaked something; returns what it leaked in that time."""
        before = target.count()
        target.toggle("running")
        time.sleep(seconds)
        wait_until(lambda: target.count().blocks > before.blocks + 10, "the target stands still")
        target.toggle("paused")
        after = target.count()
        return Sum(after.blocks - before.blocks, after.bytes - before.bytes)

    def assert_alive(self, target):
        before = target.count()
        target.toggle("running")
        wait_until(lambda: target.count().blocks > before.blocks, "the target stands still")
        self.assertIsNone(target.process.poll())
        target.process.send_signal(signal.SIGTERM)
        result = self.finish(target.process)
        self.assertEqual(result.status, 0, "the target did not end well")

    def assert_leaked(self, trace, leaked):
        totals = parse_totals(self.report(trace))
        self.assertGreater(leaked.blocks, 10)
        self.assertEqual(totals.outstanding, leaked)
        self.assert_whole(totals)
        for stack in parse_folded(self.report(trace, "--format=folded")):
            self.assertTrue(ends_in(stack.frames, ["handle_request", "leak_here"]), stack)

    def check(self, *options, stop=signal.SIGINT):
        target = Forever(self)
        target.toggle("paused")
        mleak, trace = self.attach(target, *options)
        leaked = self.run_for(target, 1)
        mleak.send_signal(stop)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_messages(result.err)
        lines = result.err.splitlines()
        verdict = lines.pop()  # nothing grew all the time if it stood still for a quarter of that
        self.assertRegex(verdict, "^mleak: (growing: leak_here < handle_request < serve, .*|nothing grew all the time|"
                                  "growing: not told of less than a second); to see how stacks grew: "
                                  "mleak report --growth " + trace)
        self.assertIn("now run: mleak report " + trace, lines[-1])
        self.assert_leaked(trace, leaked)
        self.assert_alive(target)

    def test_stopped_by_sigint(self):
        self.check()

    def test_stopped_by_sigterm(self):
        self.check(stop=signal.SIGTERM)

    def test_perf_links(self):
        self.check("--uprobes=perf")

    def test_multi_links(self):
        if not kernel_is_at_least(6, 6):
            self.skipTest("needs Linux 6.6")
        self.check("--uprobes=multi")

    def test_duration(self):
        target = Forever(self)
        target.toggle("paused")
        for seconds in 2, 8, 30:
            started = time.monotonic()
            mleak, trace = self.attach(target, "-d", str(seconds))
            leaked = self.run_for(target, 0.3)
            in_time = mleak.poll() is None
            result = self.finish(mleak)
            self.assertEqual(result.status, 0, result.err)
            self.assertGreater(time.monotonic() - started, seconds - 0.1)
            if in_time:
                break
        self.assertTrue(in_time, "this machine is too slow: the 30 s were over too early")
        self.assert_leaked(trace, leaked)
        self.assert_alive(target)

    def test_duration_while_target_runs(self):
        target = Forever(self)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        outstanding = parse_totals(self.report(trace)).outstanding
        self.assertGreater(outstanding.blocks, 0)
        target.toggle("paused")
        self.assertLessEqual(outstanding.blocks, target.count().blocks)
        self.assert_alive(target)

    def test_what_comes_while_the_probes_are_taken_out_is_no_leak(self):
        target = Forever(self, interval_ms=1)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "-d", "0.5", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        stacks = parse_folded(self.report(trace, "--format=folded", "--function", "noise"))
        # noise() frees what it gets: each of two threads may stand in it, with two blocks
        self.assertLessEqual(len(stacks), 4, stacks)
        self.assertNotIn("implied frees", self.report(trace))
        target.toggle("paused")
        self.assert_alive(target)

    def test_target_ends(self):
        target = Forever(self)
        target.toggle("paused")
        before = target.count()
        mleak, trace = self.attach(target)
        target.toggle("running")
        wait_until(lambda: target.count().blocks > before.blocks + 10, "the target stands still")
        target.process.send_signal(signal.SIGTERM)
        answers = parse_answers(self.finish(target.process).out)
        self.assertEqual(len(answers), 2)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_leaked(trace, Sum(sum(a.blocks for a in answers) - before.blocks,
                                      sum(a.bytes for a in answers) - before.bytes))

    def test_full_speed_is_exact_or_says_what_was_lost(self):
        target = Forever(self, interval_ms=0)
        target.toggle("paused")
        mleak, trace = self.attach(target)
        leaked = self.run_for(target, 0.5)
        mleak.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(mleak).status, 0)
        totals = parse_totals(self.report(trace))
        if totals.lost == 0:
            self.assertEqual(totals.outstanding, leaked)
        self.assert_alive(target)

    def test_recorder_killed(self):
        target = Forever(self)
        mleak, trace = self.attach(target)
        wait_until(lambda: parse_totals(self.mleak("report", trace).out).outstanding.blocks > 10,
                   "nothing is written")
        mleak.kill()
        self.finish(mleak)
        result = self.mleak("report", trace)
        self.assertEqual(result.status, 0, result.err)
        self.assert_messages(result.err)
        self.assertGreater(parse_totals(result.out).outstanding.blocks, 10)
        target.toggle("paused")
        self.assert_alive(target)

    def test_recorder_killed_has_all_of_a_target_that_rests(self):
        target = Forever(self)
        target.toggle("paused")
        mleak, trace = self.attach(target)
        leaked = self.run_for(target, 0.3)
        wait_until(lambda: parse_totals(self.mleak("report", trace).out).outstanding == leaked,
                   "not all is written")
        self.assertIsNone(mleak.poll())
        mleak.kill()
        self.finish(mleak)
        self.assertEqual(parse_totals(self.mleak("report", trace).out).outstanding, leaked)
        self.assert_alive(target)

    def test_two_recordings_one_after_the_other(self):
        target = Forever(self)
        target.toggle("paused")
        for _ in range(2):
            mleak, trace = self.attach(target)
            leaked = self.run_for(target, 0.3)
            mleak.send_signal(signal.SIGINT)
            self.assertEqual(self.finish(mleak).status, 0)
            self.assert_leaked(trace, leaked)
        self.assert_alive(target)
