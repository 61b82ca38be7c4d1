"""Memory that holds blocks because the user says so: --root."""

import json
import unittest

from mleaktest import needs_bpf
from reachtest import ReachCase

NAME = "program_invocation_name"
SHAPES = {"held_by_freed", "held_by_lost", "held_by_name", "get_lost"}


@needs_bpf
class RootsTest(ReachCase):
    def setUp(self):
        super().setUp()
        self.trace, said = self.reach(self.build("reach_chosen"))
        self.places = dict(line.split() for line in said)

    def judged(self, *options):
        """{function: {verdict: blocks}}"""
        document = json.loads(self.report(self.trace, "--format=json", *options))
        found = {}
        for stack in document["stacks"]:
            for shape in SHAPES & {document["frames"][i]["function"] for i in stack["frames"]}:
                found[shape] = {verdict: amount["blocks"] for verdict, amount in stack["verdicts"].items()}
        return found

    def test_what_they_point_to_is_held(self):
        plain = {"held_by_freed": {"stale": 13}, "held_by_lost": {"lost-with": 7}, "held_by_name": {"lost": 1},
                 "get_lost": {"lost": 1}}
        self.assertEqual(self.judged(), plain)
        freed, lost = self.places["freed"], self.places["lost"]
        self.assertEqual(self.judged("--root", freed), {**plain, "held_by_freed": {"held": 13}})
        # the block itself is as lost as before
        self.assertEqual(self.judged("--root=" + lost), {**plain, "held_by_lost": {"held": 7}})
        self.assertEqual(self.judged("--root", NAME), {**plain, "held_by_name": {"possible": 1}})
        self.assertEqual(self.judged("--root", NAME, "--root", freed, "--root", lost, "--root", lost),
                         {"held_by_freed": {"held": 13}, "held_by_lost": {"held": 7},
                          "held_by_name": {"possible": 1}, "get_lost": {"lost": 1}})
        self.assertEqual(self.judged("--root", NAME, "--start-pointers-only"), plain)

    def test_who_holds_them_is_told(self):
        told = self.mleak("why", "--root", NAME, "--root", self.places["freed"], self.trace)
        self.assertEqual(told.status, 0, told.err)
        self.assertRegex(told.out, r"variable %s in libc" % NAME)
        self.assertNotRegex(self.mleak("why", self.trace).out, NAME)

    def test_those_that_are_not_there_are_refused(self):
        for command in ["report", "--lost"], ["why"]:
            for root, naming in (("no_such_variable", "has a variable 'no_such_variable'"),
                                 ("0x10-0x20", "nothing was read at 0x10-0x20")):
                result = self.mleak(*command, "--root", root, self.trace)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming=naming)


if __name__ == "__main__":
    unittest.main()
