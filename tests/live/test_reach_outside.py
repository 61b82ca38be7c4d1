"""Registers, the kernel and stopped processes: what holds a block outside of memory that can be read."""

import json
import os
import re
import signal
import subprocess

from backends import both_backends, by_bpf_alone
from mleaktest import end_process, needs_bpf, read_line, wait_until
from reachtest import ReachCase

MOVER = ("20011", "1009", "1000000")


def told_by(lines):
    """Blocks by function and verdict, as a target says."""
    return {(shape, verdict): int(blocks) for shape, verdict, blocks in map(str.split, lines)}


@both_backends
class OutsideTest(ReachCase):
    def build_library(self):
        library = self.path("slot.so")
        source = self.write("slot.c", b"void *slot;\n")
        built = self.finish(self.spawn(["gcc", "-shared", "-fPIC", "-o", library, source]))
        self.assertEqual(built.status, 0, built.err)
        return library

    def test_each_shape_has_its_verdict(self):
        trace, said = self.reach(self.build("reach_outside"), self.build_library())
        told = told_by(said)
        if getattr(self, "preloaded", False):
            # an ordinary user sees the arguments of system calls and no other registers; and the
            # library has copies of stacks
            del told["held_by_running", "held"], told["held_by_waiting", "held"]
        self.assertEqual(sorted(self.found(trace, {shape for shape, _ in told}).items()), sorted(told.items()))
        running = json.loads(self.report(trace, "--format=json"))["reach"][0]["running_threads"]
        self.assertEqual(running, 1 if getattr(self, "preloaded", False) else 0)

    @by_bpf_alone
    def test_it_is_told_when_the_passes_have_not_settled(self):
        program = self.build("reach_mover")
        trace, _ = self.reach(program, *MOVER, options=("--passes", "2"))
        first = json.loads(self.report(trace, "--format=json"))["reach"][0]
        found = self.found(trace, {"get_held", "get_lost"})
        seeming = found["get_held", "lost"] + found["get_held", "lost-with"]
        self.assertEqual(found["get_lost", "lost"], 1009)
        self.assertEqual(first["settled"], first["changed"] == 0)
        head = self.report(trace)
        if first["settled"]:
            self.assertNotIn("settled", head)
        else:
            self.assertRegex(head, r"(?m)^    has not settled: .*: record with --passes 5$")
        trace, _ = self.reach(program, *MOVER, options=("--passes", "12"))
        last = json.loads(self.report(trace, "--format=json"))["reach"][0]
        found = self.found(trace, {"get_held", "get_lost"})
        self.assertEqual(found["get_lost", "lost"], 1009)
        self.assertEqual(last["passes"], 12)
        self.assertLessEqual(found["get_held", "lost"] + found["get_held", "lost-with"], seeming)
        if last["settled"]:
            self.assertEqual(found["get_held", "lost"] + found["get_held", "lost-with"], 0)


class StopCase(ReachCase):
    def attach(self, *options, argv=MOVER, program="reach_mover"):
        """A target that is recorded from before its first allocation, and its recorder."""
        target = self.spawn([self.build(program), *argv, "wait"], stdin=subprocess.PIPE)
        trace = self.path("x.mlk")
        if os.path.exists(trace):
            os.unlink(trace)  # of the attach before
        record = self.start_mleak("record", *options, "-o", trace, "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace), "nothing is attached")
        target.stdin.write(b"x")
        target.stdin.flush()
        self.assertEqual(read_line(target), "ready")
        return target, record, trace


@needs_bpf
class StopTest(StopCase):
    def test_one_pass_is_enough_when_nothing_runs(self):
        target, record, trace = self.attach("--reach=stop")
        record.send_signal(signal.SIGINT)
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"(?m)^mleak: process %d was stopped for [\d.]+ ms, to copy [\d.]+ MiB"
                         % target.pid)
        found = self.found(trace, {"get_held", "get_lost"})
        self.assertEqual(found["get_lost", "lost"], 1009)
        self.assertEqual(found["get_held", "lost"] + found["get_held", "lost-with"], 0)
        reach = json.loads(self.report(trace, "--format=json"))["reach"][0]
        self.assertEqual((reach["passes"], reach["stopped"], reach["settled"]), (1, True, True))
        target.stdin.close()
        self.assertEqual(target.wait(), 0)

    def test_registers_are_those_of_the_stop(self):
        library = OutsideTest.build_library(self)
        stay, end = os.pipe()
        record = self.start_mleak("record", "--reach=stop", "-o", self.path("x.mlk"), "--",
                                  self.build("reach_outside"), library, stdin=stay)
        os.close(stay)
        said = []
        while (line := read_line(record)) != "ready":
            said.append(line)
        self.end_twice(record)
        self.wait_for_words(record, r"wrote ")
        os.close(end)
        self.assertRegex(self.finish(record).err, "was stopped for ")
        told = told_by(said)
        self.assertEqual(sorted(self.found(self.path("x.mlk"), {shape for shape, _ in told}).items()),
                         sorted(told.items()))

    def test_a_killed_recorder_leaves_the_target_running(self):
        for _ in range(5):
            target, record, _ = self.attach("--reach=20ms,stop", argv=("100003", "1009", "1000"))
            self.wait_for_words(record, "was stopped for ")
            end_process(record)
            os.unlink(self.path("x.mlk"))
            self.assert_runs(target)

    def assert_runs(self, target):
        """It is traced by nobody, and comes to its end by itself."""
        def is_free():
            with open("/proc/%d/status" % target.pid) as status:
                text = status.read()
            return re.search(r"(?m)^TracerPid:\t0$", text) and not re.search(r"(?m)^State:\t[tT]", text)

        wait_until(is_free, "the target is let go")
        target.stdin.close()
        self.assertEqual(target.wait(), 0)

    def test_what_another_traces_is_read_while_it_runs(self):
        target, record, trace = self.attach("--reach=stop", argv=("4001", "1009", "100"))
        tracer = self.spawn(["strace", "-f", "-o", self.path("strace"), "-p", str(target.pid)])
        wait_until(lambda: self.is_traced(target.pid), "strace traces it")
        record.send_signal(signal.SIGINT)
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("process %d was not stopped, its memory was read while it ran: " % target.pid, result.err)
        tracer.send_signal(signal.SIGINT)
        self.finish(tracer)
        found = self.found(trace, {"get_held", "get_lost"})
        self.assertEqual(found["get_lost", "lost"], 1009)
        self.assert_runs(target)

    def is_traced(self, pid):
        with open("/proc/%d/status" % pid) as status:
            return "\nTracerPid:\t0\n" not in status.read()
