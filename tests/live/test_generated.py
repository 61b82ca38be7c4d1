"""Generated code that allocates as soon as it is there, before a recorder can have looked at it."""

import os
import re
import subprocess

from backends import both_backends
from mleaktest import LONG, TESTS, parse_folded
from waitingtest import WaitingCase

PROGRAM = os.path.join(TESTS, "live", "generated_target.c")
BLOCKS, SIZE = 61 * 23, 47
PATH = ["main", "generated_code_[j]", "leak_here"]


def forget_names(pid):
    os.unlink("/tmp/perf-%d.map" % pid)


@both_backends
class GeneratedTest(WaitingCase):
    def setUp(self):
        super().setUp()
        self.target = self.path("generated")
        subprocess.run(["gcc", "-O2", "-o", self.target, PROGRAM], check=True, timeout=LONG)

    def check(self, trace):
        stacks = [stack for stack in parse_folded(self.mleak("report", "--format=folded", trace).out)
                  if stack.frames[-1] == "leak_here"]
        through = [stack for stack in stacks
                   if stack.frames[0] == "_start" and [frame for frame in stack.frames if frame in PATH] == PATH]
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        self.assertEqual(sum(stack.bytes for stack in through), BLOCKS * SIZE)

    def test_stacks_go_through_code_that_has_just_been_made(self):
        self.check(self.record_waiting(self.target, said=str(BLOCKS), before_end=forget_names)[0])

    def test_the_process_ends_right_after_that(self):
        trace, _ = self.record(self.target, "end")
        forget_names(int(re.search(r"\(pid (\d+)\)", self.mleak("report", trace).out)[1]))
        self.check(trace)
