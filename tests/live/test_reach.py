"""The pointers in memory tell lost blocks from held ones, as the program that has them knows."""

import csv
import io
import json
import os
import subprocess

import pagetest
from backends import both_backends
from mleaktest import needs_bpf, wait_until
from reachtest import ReachCase


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

    def refused(self, *argv):
        """What a report that needs verdicts says."""
        report = self.mleak(*argv)
        self.assertEqual(report.status, 2)
        self.assertEqual(report.err.count("\n"), 1, report.err)
        return report.err

    def test_without_a_snapshot_nothing_is_judged(self):
        trace = self.path("x.mlk")
        self.finish(self.start_mleak("record", "-o", trace, "--", self.sample("single")))
        for argv in (["report", "--lost"], ["report", "--fail-on-leak=lost"], ["report", "--cost=lost", "--folded"], ["why"]):
            self.assertRegex(self.refused(*argv, trace),
                             r"has no snapshot of the pointers in memory: the process ended before its "
                             r"memory was read, or --reach was not given")
        self.assertNotIn("by the pointers", self.report(trace))
        self.assertEqual(self.mleak("report", "--verdict", "lost,none", trace).status, 2)
        self.assertIn("'gone'", self.refused("report", "--verdict", "lost,gone", trace))

    def test_the_reason_is_told_why_nothing_is_judged(self):
        trace, _ = self.reach(self.build("reach_target"))
        self.assertRegex(self.refused("report", "--lost", "--at", "0.001", trace),
                         r"the first snapshot of the pointers in '.*' ended at \d+\.\d+ s, after the chosen moment")
        self.assertRegex(self.refused("why", "--pid", "1", trace),
                         r"no whole snapshot of the pointers of process 1, but of these: \d+")
        self.assertIn("low bits", self.refused("report", "--lost", "--tag-mask=0xff00000000000000", trace))
        plain = self.path("plain.mlk")
        self.finish(self.start_mleak("record", "-d", "0.5", "-o", plain, "--", "sleep", "2"))
        self.assertRegex(self.refused("why", plain),
                         r"has no snapshot of the pointers in memory: record it with --reach\n$")

    def test_every_output_has_the_sums(self):
        trace, said = self.reach(self.build("reach_target"))
        lost = sum(int(line.split()[2]) for line in said if line.split()[1] in ("lost", "lost-with"))
        rows = list(csv.DictReader(io.StringIO(self.report(trace, "--format=csv"))))
        self.assertEqual(sum(int(row["lost_blocks"]) + int(row["lost-with_blocks"]) for row in rows), lost)
        stacks = json.loads(self.report(trace, "--format=json"))["stacks"]
        self.assertEqual(sum(stack["verdicts"].get(word, {"blocks": 0})["blocks"] for stack in stacks
                             for word in ("lost", "lost-with")), lost)
        total = sum(stack["verdicts"].get(word, {"bytes": 0})["bytes"] for stack in stacks
                    for word in ("lost", "lost-with"))
        folded = self.report(trace, "--folded", "--cost=lost")
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), total)
        growth = list(csv.DictReader(io.StringIO(self.report(trace, "--growth", "--format=csv"))))
        self.assertEqual(sum(int(row["lost_bytes"]) for row in growth), total)
        self.assertRegex(self.report(trace, "--growth"), r"1,081 bytes in 23 blocks are lost")
        page = pagetest.Page(self.report(trace, "--format=html"))
        self.assertEqual(sum(page.data["reach"][word]["bytes"] for word in ("lost", "lost with those")), total)
        self.assertEqual(sum(stack.details["lost"][0] for stack in page.stacks), total)
        self.assertEqual(self.mleak("report", "--fail-on-leak=lost", trace).status, 1)
        self.assertEqual(self.mleak("report", "--fail-on=lost", trace).status, 1)
        self.assertEqual(self.mleak("report", "--fail-on-leak=lost:%d" % total, trace).status, 0)
        self.assertEqual(self.mleak("report", "--fail-on-leak=lost:%d" % (total - 1), trace).status, 1)


@needs_bpf
class GoneTest(ReachCase):
    def test_a_process_that_ends_by_itself_is_not_held(self):
        trace = self.path("x.mlk")
        target = self.spawn([self.build("reach_mover"), "101", "23", "100", "wait"], stdin=subprocess.PIPE)
        record = self.start_mleak("record", "--reach", "-o", trace, "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace), "nothing is attached")
        target.stdin.write(b"x")
        target.stdin.close()
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("memory was not read: ", result.err)
