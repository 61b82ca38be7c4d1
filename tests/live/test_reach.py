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


class ReachCase(Case):
    def build(self, name):
        program = self.path(name)
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", program,
                                        os.path.join(TESTS, "live", name + ".c")]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def reach(self, *argv):
        """The trace of a command whose memory was read when it had said "ready", and what it said
        before."""
        trace, said = self.path("x.mlk"), []
        stay, end = os.pipe()
        record = self.start_mleak("record", "--reach", "-o", trace, "--", *argv, stdin=stay)
        os.close(stay)
        while (line := read_line(record)) != "ready":
            said.append(line)
        # the first is the command's own, which the terminal would have sent it; the second ends it
        for _ in range(2):
            record.send_signal(signal.SIGINT)
            wait_until(lambda: not pending(record.pid), "the signal is taken")
        self.wait_for_words(record, r"wrote ")
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


@both_backends
class ReachTest(ReachCase):
    def test_each_shape_has_its_verdict(self):
        trace, said = self.reach(self.build("reach_target"))
        told = {}
        for line in said:
            shape, verdict, blocks = line.split()
            told[shape, verdict] = int(blocks)
        found = self.found(trace, {shape for shape, _ in told})
        if getattr(self, "preloaded", False):
            # the library has a copy of the stack, which the report cannot tell from other memory
            del told["held_by_old_frame", "stale"]
            found = {key: blocks for key, blocks in found.items() if key[0] != "held_by_old_frame"}
        self.assertEqual(sorted(found.items()), sorted(told.items()))
        # the head and JSON have the same sums
        sums = json.loads(self.report(trace, "--format=json"))["reach"]
        self.assertEqual(len(sums), 1)
        self.assertEqual((sums[0]["passes"], sums[0]["settled"]), (3, True))
        for verdict in ("lost", "lost-with"):
            blocks = sum(number for (_, word), number in told.items() if word == verdict)
            self.assertEqual(sums[0]["blocks"][verdict]["blocks"], blocks)
        head = self.report(trace, "--lost")
        lost = sum(blocks for (_, verdict), blocks in told.items() if verdict == "lost")
        self.assertRegex(head, r"(?m)^    lost +%d blocks +\d" % lost)

    def test_pointers_that_move_meanwhile_are_not_missed(self):
        trace, _ = self.reach(self.build("reach_mover"), "40009", "1009", "10000")
        found = self.found(trace, {"get_held", "get_lost"})
        self.assertEqual(found["get_lost", "lost"], 1009)
        self.assertEqual(found["get_held", "lost"] + found["get_held", "lost-with"], 0)
        self.assertGreater(found["get_held", "held"], 40000)

    def test_without_a_snapshot_nothing_is_judged(self):
        trace = self.path("x.mlk")
        self.finish(self.start_mleak("record", "-o", trace, "--", self.sample("single")))
        report = self.mleak("report", "--lost", trace)
        self.assertEqual(report.status, 2)
        self.assertRegex(report.err, r"^mleak: '.*x.mlk' has no whole snapshot of the pointers in "
                                     r"memory: record it with --reach\n$")
        self.assertNotIn("by the pointers", self.report(trace))
        self.assertEqual(self.mleak("report", "--verdict", "lost,none", trace).status, 2)
        wrong = self.mleak("report", "--verdict", "lost,gone", trace)
        self.assertEqual(wrong.status, 2)
        self.assertIn("'gone'", wrong.err)

    def test_a_command_that_ends_by_itself_is_gone(self):
        trace = self.path("x.mlk")
        record = self.finish(self.start_mleak("record", "--reach", "-o", trace, "--",
                                              self.sample("single")))
        self.assertEqual(record.status, 0)
        self.assertIn("memory was not read: ", record.err)
