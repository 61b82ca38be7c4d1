"""`mleak report --cost blocks`: the same stacks, by the number of their outstanding blocks."""

import json
import os
import re

from mleaktest import TESTS, Case, parse_folded, parse_tree

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")


class ReportBlocksTest(Case):
    def document(self, *args):
        return json.loads(self.report(TRACE, "--format=json", *args))

    def test_folded_stacks_count_blocks(self):
        whole = self.document()
        stacks = parse_folded(self.report(TRACE, "--folded", "--cost", "blocks"))
        self.assertEqual(sum(stack.bytes for stack in stacks),
                         whole["totals"]["outstanding"]["blocks"])
        self.assertEqual(sorted(stack.bytes for stack in stacks),
                         sorted(stack["outstanding"]["blocks"] for stack in whole["stacks"]))

    def test_lists_are_sorted_by_blocks(self):
        document = self.document("--cost", "blocks")
        self.assertEqual(document["cost"], "blocks")
        blocks = [stack["outstanding"]["blocks"] for stack in document["stacks"]]
        self.assertEqual(blocks, sorted(blocks, reverse=True))
        self.assertEqual(sorted(s["id"] for s in document["stacks"]),
                         sorted(s["id"] for s in self.document()["stacks"]))
        flat = [int(n.replace(",", "")) for n in re.findall(
            r"(?m)^\t[\d,]+ bytes? in ([\d,]+) allocations?", self.report(TRACE, "--flat", "--cost", "blocks"))]
        self.assertEqual(flat, blocks)
        one = self.document("--cost", "blocks", "-n", "1")
        self.assertEqual(one["stacks"][0]["outstanding"]["blocks"], blocks[0])
        # the heaviest by bytes is a single block
        self.assertNotEqual(one["stacks"][0]["id"], self.document("-n", "1")["stacks"][0]["id"])

    def test_a_tree_begins_with_most_blocks(self):
        whole, tree = parse_tree(self.report(TRACE)), parse_tree(self.report(TRACE, "--cost", "blocks"))
        self.assertEqual(sorted(whole), sorted(tree))
        roots = [node.blocks for node in tree if node.name in ("_start", "_dl_start_user")]
        self.assertEqual(roots, sorted(roots, reverse=True))
        self.assertNotEqual(whole[0], tree[0])

    def test_tables_have_no_cost(self):
        for args in ["--growth"], ["--by", "size"], ["--format=html"], ["--format=pprof"]:
            result = self.mleak("report", "--cost", "blocks", *args, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--cost")
