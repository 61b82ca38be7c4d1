"""The pointers in memory tell lost blocks from held ones, as the program that has them knows."""

import collections
import json
import os
import re
import signal

from backends import both_backends
from mleaktest import TESTS, Case, read_line, wait_until

VERDICTS = ["none", "lost", "lost-with", "stale", "possible", "held"]


def pending(pid):
    """Does a SIGINT wait to be taken by process @pid?"""
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"(?m)^ShdPnd:\s*(\w+)$", status.read()).group(1), 16) >> signal.SIGINT - 1 & 1


@both_backends
class ReachTest(Case):
    def build(self):
        program = self.path("reach")
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", program,
                                        os.path.join(TESTS, "live", "reach_target.c")]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def told(self, process):
        """What the program says that it has: blocks by function and verdict."""
        told = collections.Counter()
        while (line := read_line(process)) != "ready":
            shape, verdict, blocks = line.split()
            told[shape, verdict] = int(blocks)
        return told

    def found(self, trace, shapes):
        """The same by the report."""
        found = collections.Counter()
        for verdict in VERDICTS:
            document = json.loads(self.report(trace, "--format=json", "--verdict", verdict))
            frames = document["frames"]
            for stack in document["stacks"]:
                names = {frames[i]["function"] for i in stack["frames"]}
                for shape in names & shapes:
                    found[shape, verdict] += stack["outstanding"]["blocks"]
        return found

    def test_each_shape_has_its_verdict(self):
        trace = self.path("x.mlk")
        stay, end = os.pipe()
        record = self.start_mleak("record", "--reach", "-o", trace, "--", self.build(), stdin=stay)
        os.close(stay)
        told = self.told(record)
        # the first is the command's own, which the terminal would have sent it; the second ends it
        for _ in range(2):
            record.send_signal(signal.SIGINT)
            wait_until(lambda: not pending(record.pid), "the signal is taken")
        self.wait_for_words(record, r"wrote ")
        os.close(end)
        self.finish(record)
        found = self.found(trace, {shape for shape, _ in told})
        if getattr(self, "preloaded", False):
            # the library has a copy of the stack, which the report cannot tell from other memory
            del told["held_by_old_frame", "stale"]
            found = {key: blocks for key, blocks in found.items() if key[0] != "held_by_old_frame"}
        self.assertEqual(sorted(found.items()), sorted(told.items()))
