"""Calls of C from goroutines: each block has the Go callers that runtime.Callers tells, at its lines."""

import os
import subprocess

from backends import both_backends
from gotest import GoCase, needs_go
from mleaktest import LONG, needs_bpf, wait_until


@needs_go
@both_backends
class GoStacksTest(GoCase):
    def record_calls(self, *flags):
        """Build calls.go with @flags, and record it: the trace, and what it said."""
        program = self.build_calls(*flags)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "--", program)
        self.assertEqual(result.status, 0, result.err)
        return trace, result.out

    def test_callers_and_their_lines(self):
        trace, output = self.record_calls()
        self.assert_callers(trace, output)

    def test_without_symbols(self):
        """Names and lines are in the trace: on another machine, and in years, they are the same."""
        trace, output = self.record_calls("-gcflags=-l", "-ldflags=-s -w")
        for name in ("program", "calls.go"):
            os.remove(self.path(name))
        self.assert_callers(trace, output)

    def test_position_independent(self):
        trace, output = self.record_calls("-buildmode=pie", "-gcflags=-l", "-ldflags=-s -w")
        self.assert_callers(trace, output)

    def test_what_c_called_go(self):
        """Where C has called Go, its functions stand between: each is in its place."""
        trace, _ = self.record_calls()
        seen = 0
        for frames, blocks in self.stacks(trace):
            names = [f["function"] for f in frames]
            self.assertNotIn(None, names)
            for i, name in enumerate(names):
                if name == "call_go":
                    self.assertEqual(names[i - 1], "goCallback")
                    self.assertEqual(names[i - 2], "crosscall2")
                    self.assertTrue(names[i - 3].startswith("runtime.cgocallback"), names)
                    self.assertIn("runtime.asmcgocall.abi0", names[i + 1:i + 3])
                    seen += blocks
            if "thread_of_c" in names:
                self.assertIn("start_thread", names[names.index("thread_of_c"):])
            else:
                self.assertTrue(names[-1].startswith("runtime.goexit"), names)
        self.assertGreater(seen, 50)

    def test_the_runtimes_own_memory_is_no_block(self):
        """All that is outstanding was allocated by C; Go's heap and what is reserved for it is not."""
        trace, _ = self.record_calls()
        report = self.mleak("report", "--format=folded", trace).out
        self.assertNotIn("runtime.mmap", report)
        self.assertNotIn("x_cgo_mmap", report)
        self.assertNotIn("reserved", self.mleak("report", trace).out)

    def test_what_is_cut_is_not_wrong(self):
        """With little of each stack it ends early: what is there are the first of its callers."""
        program, trace = self.build_calls(), self.path("x.mlk")
        result = self.mleak("record", "--stack-size", "1024", "-o", trace, "--", program)
        self.assertEqual(result.status, 0, result.err)
        told, found = self.told(result.out), self.found(trace)
        starts = {stack[:i] for stack in told for i in range(len(stack) + 1)}
        self.assertEqual([stack for stack in found if stack not in starts], [])
        self.assertEqual(sum(found.values()), sum(told.values()))
        self.assertLess(sum(min(blocks, told[stack]) for stack, blocks in found.items()), sum(told.values()))


class AttachedCase(GoCase):
    """The same of a process that runs already."""

    def attach_to_calls(self, *options):
        program = self.build_calls()
        target = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        pid = int(target.stdout.readline())
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(pid))
        wait_until(lambda: os.path.exists(trace) or mleak.poll() is not None, "mleak attached nothing")
        target.stdin.write("go\n")
        target.stdin.flush()
        lines = []
        while (line := target.stdout.readline()) != "end\n":
            self.assertNotEqual(line, "")
            lines.append(line)
        target.stdin.write("end\n")
        target.stdin.flush()
        self.assertEqual(target.wait(LONG), 0)
        self.assertEqual(self.finish(mleak).status, 0)
        self.assert_callers(trace, "".join(lines))


@needs_go
@needs_bpf
class GoAttachedTest(AttachedCase):
    def test_callers(self):
        self.attach_to_calls()


@needs_go
class GoInjectedTest(AttachedCase):
    def test_callers(self):
        self.attach_to_calls("--backend", "inject")
