"""`mleak why` of traces with many processes, whose maker knows what hangs on what."""

import json
import os

from mleaktest import BUILD, TESTS, Case

TOOL = os.path.join(BUILD, "tests", "tools", "reach_trace")
SIZE = 96


class WhyOfManyTest(Case):
    def make(self, processes, blocks, pointers, passes):
        trace = self.path("x.mlk")
        made = self.finish(self.spawn([TOOL, trace, *map(str, (processes, blocks, pointers, passes))]))
        self.assertEqual(made.status, 0, made.err)
        return trace

    def why(self, trace, *what):
        result = self.mleak("why", "--format=json", *what, trace)
        self.assertEqual((result.status, result.err), (0, ""))
        return json.loads(result.out)["processes"]

    def test_each_process_has_its_own_answer(self):
        trace = self.make(20, 1000, 10000, 3)
        found = self.why(trace)
        self.assertEqual([process["pid"] for process in found], list(range(100, 120)))
        for process in found:
            self.assertEqual((process["passes"], process["pass"]), (3, 3))
            rows = {row["kind"]: row for row in process["holders"]}
            self.assertEqual(set(rows), {"data", "lost"})
            self.assertEqual((rows["data"]["blocks"], rows["data"]["bytes"]), (990, 990 * SIZE))
            # three of four blocks hang on one word of data, the others on another
            self.assertEqual(sorted(first["blocks"] for first in rows["data"]["first_blocks"]), [240, 750])
            self.assertEqual((rows["lost"]["blocks"], rows["lost"]["module"] if "module" in rows["lost"] else ""),
                             (10, ""))
        sums = json.loads(self.report(trace, "--format=json"))["reach"]
        self.assertEqual(len(sums), 20)
        for process in sums:
            blocks = process["blocks"]
            self.assertEqual((blocks["held"]["blocks"], blocks["lost"]["blocks"] + blocks["lost-with"]["blocks"]), (990, 10))
        self.assertEqual([process["pid"] for process in self.why(trace, "--pid=107")], [107])

    def test_a_way_in_a_tree(self):
        trace = self.make(2, 1000, 2000, 1)
        # block 6 of the tree of block 0: its parents are 2 and 0
        base, spacing = 0x7f0000000000, 112
        for process in self.why(trace, "0x%x" % (base + 6 * spacing)):
            self.assertEqual([step["address"] for step in process["path"]],
                             [base + block * spacing for block in (0, 2, 6)])
            self.assertEqual([step["offset"] for step in process["path"][1:]], [8, 8])

    def test_a_trace_that_was_cut_says_what_it_lacks(self):
        with open(self.make(1, 20000, 200000, 1), "rb") as file:
            whole = file.read()
        cut = self.write("cut.mlk", whole[:len(whole) * 3 // 4])
        for argv in ["why"], ["report", "--lost"], ["report", "--fail-on-leak=lost"]:
            result = self.mleak(*argv, cut)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assertIn("no snapshot of the pointers in '%s' is whole: the process ended while its memory was read" % cut,
                          result.err)

    def test_a_trace_without_pointers_says_so(self):
        trace = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
        result = self.mleak("why", trace)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="record it with --reach")
