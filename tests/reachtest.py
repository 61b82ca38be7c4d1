"""Recordings of programs whose memory was read when they had said that they are ready."""

import collections
import json
import os

from mleaktest import TESTS
from waitingtest import WaitingCase

VERDICTS = ["none", "lost", "lost-with", "stale", "possible", "held"]


class ReachCase(WaitingCase):
    def build(self, name, *options):
        program = self.path(name)
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wl,-z,now",
                                        "-o", program,
                                        os.path.join(TESTS, "live", name + ".c"), "-ldl", *options]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def reach(self, *argv, options=(), before_end=None):
        """The trace of a command whose memory was read when it had said "ready", and what it said before.
        @before_end is called with the command's process while it is still there."""
        return self.record_waiting(*argv, said="ready", options=("--reach", *options), before_end=before_end)

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
