"""Recordings of programs whose memory was read when they had said that they are ready."""

import collections
import json
import os
import re
import signal

from mleaktest import TESTS, Case, command_of, read_line, wait_until

VERDICTS = ["none", "lost", "lost-with", "stale", "possible", "held"]


def pending(pid):
    """Does a SIGINT wait to be taken by process @pid?"""
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"(?m)^ShdPnd:\s*(\w+)$", status.read()).group(1), 16) >> signal.SIGINT - 1 & 1


class ReachCase(Case):
    def build(self, name, *options):
        program = self.path(name)
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wl,-z,now",
                                        "-o", program,
                                        os.path.join(TESTS, "live", name + ".c"), "-ldl", *options]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def end_twice(self, record):
        """End the recording while its command runs."""
        # the first is the command's own, which the terminal would have sent it; the second ends it
        for _ in range(2):
            record.send_signal(signal.SIGINT)
            wait_until(lambda: not pending(record.pid), "the signal is taken")

    def reach(self, *argv, options=(), before_end=None):
        """The trace of a command whose memory was read when it had said "ready", and what it said before.
        @before_end is called with the command's process while it is still there."""
        trace, said = self.path("x.mlk"), []
        stay, end = os.pipe()
        record = self.start_mleak("record", "--reach", *options, "-o", trace, "--", *argv, stdin=stay)
        os.close(stay)
        while (line := read_line(record)) != "ready":
            said.append(line)
        self.end_twice(record)
        self.wait_for_words(record, r"wrote ")
        if before_end:
            before_end(command_of(record.pid))
        os.close(end)
        self.finish(record)
        return trace, said

    def found(self, trace, shapes):
        """Blocks by function, of those in @shapes, and verdict."""
        found = collections.Counter()
        for verdict in VERDICTS:
            document = json.loads(self.report(trace, "--format=json", "--verdict", verdict))
            frames = document["frames"]
            for stack in document["stacks"]:
                names = {frames[i]["function"] for i in stack["frames"]}
                for shape in names & shapes:
                    found[shape, verdict] += stack["outstanding"]["blocks"]
        return found
