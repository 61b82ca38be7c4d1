"""`mleak report --growth`, `--by`, `--timeline` and `--cost` on a trace of which every block is known."""

import csv
import io
import json
import os

import forge
from mleaktest import TESTS, Case, parse_folded

# One block of 72,704 bytes from the beginning on, and three stacks of 23 blocks that grow.
TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")


class ReportTablesTest(Case):
    def rows(self, *args):
        text = self.report(TRACE, "--format=csv", *args)
        return list(csv.DictReader(io.StringIO(text, newline="")))

    def sums(self, *args):
        """Of a table by some key: bytes and blocks by the key, in order."""
        key = args[args.index("--by") + 1]
        return [(row[key], int(row["outstanding_bytes"]), int(row["outstanding_blocks"]))
                for row in self.rows(*args)]

    def document(self, *args):
        return json.loads(self.report(TRACE, "--format=json", *args))

    def test_json_of_a_table_begins_and_ends_as_that_of_the_report(self):
        for choice in [], ["--function", "place_order", "--at", "0.41"]:
            report = self.document(*choice)
            self.assertLessEqual({"mleak", "trace", "totals", "processes", "shown", "lost", "unwound",
                                  "overruns", "suppressed", "filtered"}, set(report))
            for kind in "bytes", "blocks":
                self.assertEqual(sum(stack["outstanding"][kind] for stack in report["stacks"]) +
                                 report["filtered"][kind], report["totals"]["outstanding"][kind])
            own = {"schema", "frames", "cost", "stacks", "left_out"}
            for table, schema in ((["--growth"], "growth"), (["--timeline"], "timeline"),
                                  (["--by", "size"], "groups"), (["--by", "file"], "groups")):
                with self.subTest(table=table, choice=choice):
                    document = self.document(*table, *choice)
                    self.assertEqual((document["schema"], document["version"]),
                                     ("mleak-" + schema, 1))
                    for key in set(report) - own:
                        self.assertEqual(document[key], report[key], key)

    def test_json_and_csv_of_growth_say_the_same(self):
        for top in 0, 3:
            with self.subTest(top=top):
                more = ["-n", str(top)] if top else []
                document, rows = self.document("--growth", *more), self.rows("--growth", *more)
                self.assertEqual(len(document["stacks"]), len(rows))
                for stack, row in zip(document["stacks"], rows):
                    names = [document["frames"][i]["function"] for i in reversed(stack["frames"])]
                    self.assertEqual(
                        [stack["shape"], str(stack["outstanding"]["bytes"]),
                         str(stack["outstanding"]["blocks"]), str(stack["bytes_per_minute"]),
                         "%.4f" % stack["share_freed"], str(stack.get("median_lifetime_ns", "")),
                         str(stack["replaced"]["bytes"]), str(stack["samples"]),
                         str(stack["bytes_per_minute_low"]), str(stack["bytes_per_minute_high"]),
                         ";".join(names), str(document["processes"][stack["process"]]["pid"]),
                         stack["id"]],
                        list(row.values()))
                    self.assertEqual(len(stack["bytes_then"]), len(document["until_ns"]))
                    self.assertEqual(stack["bytes_then"][-1], stack["outstanding"]["bytes"])
                    self.assertIn(stack["shape"], document["shapes"])
                self.assertIn("evidence, not proof", document["remark"])
                for kind in "bytes", "blocks":
                    self.assertEqual(
                        sum(stack["outstanding"][kind] for stack in document["stacks"]) +
                        document["left_out"][kind], document["totals"]["outstanding"][kind])
                self.assertEqual(document["left_out"]["stacks"], 4 - len(rows))

    def test_json_and_csv_of_a_timeline_say_the_same(self):
        for choice, exact in ([], True), (["--function", "^main$"], False):
            document, rows = self.document("--timeline", *choice), self.rows("--timeline", *choice)
            self.assertEqual([["%.9f" % (interval["until_ns"] / 1e9),
                               str(interval["outstanding_bytes"]), str(interval["most_bytes"]),
                               str(interval.get("rss_bytes", "")), str(interval.get("swap_bytes", ""))]
                              for interval in document["intervals"]],
                             [list(row.values()) for row in rows])
            self.assertEqual(document["exact"], exact)
        self.assertEqual(self.document("--timeline")["at_peak"],
                         self.document("--timeline")["totals"]["peak"])
        # after the last event of the recording nothing changes any more
        self.assertEqual(document["intervals"][-1]["until_ns"], document["trace"]["duration_ns"])

    def test_a_timeline_has_what_is_in_swap(self):
        for swap, columns in ((0, "RSS then"), (3 << 20, "RSS then +swap then")):
            samples = [(7, forge.SECOND, {1: 5 << 20}), (7, 3 * forge.SECOND // 2, {1: 2 << 20, 6: swap})]
            trace = forge.small([(0x1000, 47), (0x2000, 53), (0x3000, 59)], more=[forge.memory(samples)])
            path = self.write("y.mlk", trace.bytes())
            text = self.mleak("report", "--timeline", path).out
            self.assertRegex(text, r"(?m)^ +until +bytes then +most meanwhile +%s$" % columns)
            self.assertEqual("{:,}".format(3 << 20) in text.splitlines()[-4], swap > 0, text)
            rows = list(csv.DictReader(io.StringIO(self.mleak("report", "--timeline", "--format=csv", path).out)))
            self.assertEqual([(row["rss_bytes"], row["swap_bytes"]) for row in (rows[0], rows[-1])],
                             [(str(5 << 20), ""), (str(2 << 20), str(swap))])

    def test_json_and_csv_of_groups_say_the_same(self):
        for key in "function", "size":
            for more in [], ["-n", "1"]:
                with self.subTest(key=key, more=more):
                    document = self.document("--by", key, *more)
                    rows = self.rows("--by", key, *more)
                    self.assertEqual(document["by"], key)
                    self.assertEqual([[group[key]] + [
                        str(group[amount][kind]) for amount in ("outstanding", "with_callees")
                        if amount in group for kind in ("bytes", "blocks")]
                                      for group in document["groups"]],
                                     [[row.pop(key), *row.values()] for row in rows])
                    for kind in "bytes", "blocks":
                        self.assertEqual(
                            sum(group["outstanding"][kind] for group in document["groups"]) +
                            document["left_out"][kind], document["totals"]["outstanding"][kind])

    def test_growth_is_ranked_before_it_is_cut(self):
        everything = self.rows("--growth")
        self.assertEqual([row["outstanding_bytes"] for row in everything],
                         ["2553", "1656", "1081", "72704"])
        for top in 1, 3, 4, 9:
            self.assertEqual(self.rows("--growth", "-n", str(top)), everything[:top])
        text = self.report(TRACE, "--growth", "-n", "2")
        self.assertIn("\nleft out: 2 stacks that grew less with 24 blocks, 73,785 bytes\n", text)
        text = self.report(TRACE, "--growth", "-n", "3")
        self.assertIn("\nleft out: 1 stack that grew less with 1 block, 72,704 bytes\n", text)
        self.assertNotIn("left out", self.report(TRACE, "--growth", "-n", "4"))

    def test_the_rows_of_a_cut_table_have_their_whole_sums(self):
        for key in "function", "module", "size", "age", "thread", "file":
            everything = self.sums("--by", key)
            for top in {1, 2, len(everything)}:
                with self.subTest(key=key, top=top):
                    shown = self.sums("--by", key, "-n", str(top))
                    heaviest = sorted((row[1] for row in everything), reverse=True)[:top]
                    self.assertEqual(sorted((row[1] for row in shown), reverse=True), heaviest)
                    self.assertEqual(shown, [row for row in everything if row in shown])

    def test_text_says_what_a_table_leaves_out(self):
        text = self.report(TRACE, "--by", "size", "-n", "2")
        self.assertRegex(text, r"(?m)^ +4,209 +46  65 - 128\n +72,704 +1  65537 - 131072\n\n"
                               r"left out: 1 lighter row with 23 blocks, 1,081 bytes$")
        self.assertIn("\nleft out: 11 lighter rows with 0 blocks, 0 bytes\n",
                      self.report(TRACE, "--by", "function", "-n", "2"))
        self.assertNotIn("left out", self.report(TRACE, "--by", "size", "-n", "3"))

    def test_what_older_leaves_out_at_the_end_is_no_rest_of_a_leak(self):
        whole = {row["stack"]: row for row in self.rows("--growth")}
        older = self.rows("--growth", "--older", "20ms")
        self.assertEqual([row["shape"] for row in older], ["unclear"] * 3 + ["once"])
        for row in older[:3]:
            self.assertLess(int(row["outstanding_bytes"]),
                            int(whole[row["stack"]]["outstanding_bytes"]))
            self.assertAlmostEqual(int(row["bytes_per_minute"]) /
                                   int(whole[row["stack"]]["bytes_per_minute"]), 1, delta=0.2)
        for args, said in ([], False), (["--older", "20ms"], True), (["--between", "0,0.43"], False):
            self.assertEqual("the recording: the part of it" in
                             self.report(TRACE, "--growth", *args), said)

    def test_the_peak_is_of_the_blocks_that_are_asked_for(self):
        for args, said in (["--thread", "24331"], True), ([], False), (["--function", "main"], False):
            text = self.report(TRACE, "--timeline", *args)
            self.assertEqual("\npeak of all stacks, of the selected blocks: " in text, said)
        young = self.report(TRACE, "--timeline", "--between", "0.4,0.44")
        peak = self.document("--between", "0.4,0.44")["totals"]["peak"]
        self.assertIn("selected blocks: {:,} bytes in {:,} blocks; ".format(peak["bytes"], peak["blocks"]),
                      young)
        # the first block, which is 72,704 bytes, is none of them
        self.assertLess(peak["bytes"], 72704)

    def test_the_head_and_the_last_interval_have_the_same_end(self):
        """The recording of this trace lasted 438.55 ms."""
        text = self.report(TRACE, "--timeline")
        self.assertIn(", 0.439 s", text.splitlines()[0])
        self.assertRegex(text, r"\n +0\.439 s +[\d,]+ +[\d,]+ +#+\n\npeak of")

    def test_a_timeline_is_of_all_stacks(self):
        result = self.mleak("report", "--timeline", "-n", "2", TRACE)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="--top")

    def test_a_timeline_shows_the_peak(self):
        peak = json.loads(self.report(TRACE, "--format=json"))["totals"]["peak"]["bytes"]
        rows = self.rows("--timeline")
        most = [int(row["most_bytes"]) for row in rows]
        self.assertEqual(max(most), peak)
        for row in rows:
            self.assertGreaterEqual(int(row["most_bytes"]), int(row["outstanding_bytes"]))
        self.assertGreater(max(most), max(int(row["outstanding_bytes"]) for row in rows))
        # the longest bar is that of the peak
        text = self.report(TRACE, "--timeline")
        self.assertRegex(text, r"(?m)^ +[\d.]+ s +[\d,]+ +%s  #{50}$" % format(peak, ","))
        self.assertNotIn("an upper bound", text)

    def test_of_one_stack_the_timeline_is_exact_and_of_some_an_upper_bound(self):
        churn = self.rows("--timeline", "--function", "^churn")
        self.assertLessEqual(max(int(row["most_bytes"]) for row in churn), 100003 - 72704)
        self.assertIn("an upper bound", self.report(TRACE, "--timeline", "--function", "^main$"))
        self.assertNotIn("an upper bound",
                         self.report(TRACE, "--timeline", "--function", "place_order"))

    def test_costs_of_stacks_of_which_nothing_is_left(self):
        totals = json.loads(self.report(TRACE, "--format=json"))["totals"]
        for cost, amount in ("allocated", totals["allocated"]), ("peak", totals["peak"]):
            stacks = json.loads(self.report(TRACE, "--format=json", "--cost", cost))["stacks"]
            rows = self.rows("--cost", cost)
            self.assertEqual(len(rows), len(stacks))
            for kind in "bytes", "blocks":
                self.assertEqual(sum(stack[cost][kind] for stack in stacks), amount[kind])
                self.assertEqual(sum(int(row["%s_%s" % (cost, kind)]) for row in rows),
                                 amount[kind])
            values = [stack[cost]["bytes"] for stack in stacks]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertIn(0, [stack["outstanding"]["blocks"] for stack in stacks])

    def test_temporary_blocks_are_those_of_folded(self):
        for more in [], ["--temporary", "1s"]:
            folded = sum(stack.bytes for stack in
                         parse_folded(self.report(TRACE, "--folded", "--cost=temporary", *more)))
            report = json.loads(self.report(TRACE, "--format=json", "--cost=temporary", *more))
            self.assertEqual(report["cost"], "temporary")
            self.assertEqual(sum(stack["temporary"] for stack in report["stacks"]), folded)
            self.assertEqual(sum(int(row["temporary_blocks"])
                                 for row in self.rows("--cost=temporary", *more)), folded)
            self.assertEqual(folded > 0, bool(more))

    def test_without_a_cost_only_what_is_outstanding_is_listed(self):
        for args in [], ["--cost=outstanding"]:
            report = json.loads(self.report(TRACE, "--format=json", *args))
            self.assertEqual(report["cost"], "outstanding")
            self.assertEqual([stack["outstanding"]["bytes"] for stack in report["stacks"]],
                             [72704, 2553, 1656, 1081])
            self.assertEqual(len(self.rows(*args)), 4)
        for view in [], ["--flat"], ["--by", "size", "--format=csv"], ["--format=pprof"]:
            result = self.mleak("report", "--cost", "allocated", *view, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--cost")

    def test_figures_have_separators_and_one_block_is_no_blocks(self):
        text = self.report(TRACE, "--growth")
        self.assertRegex(text, r"(?m)^unclear +2,553 +23 +- +- ")
        self.assertIn("\nfiltered out: 1 block, 72,704 bytes\n",
                      self.report(TRACE, "--function", "main"))
        self.assertRegex(self.report(TRACE, "--at", "0.39"), r"(?m)^  frees +[\d,]+ blocks")

    def test_where_no_names_are_shown_none_are_missed(self):
        for args, said in ((["--by", "function"], True), (["--growth"], True), ([], True),
                           (["--by", "size"], False), (["--by", "age"], False),
                           (["--by", "thread"], False), (["--timeline"], False)):
            self.assertEqual("modules that lack symbols" in self.report(TRACE, *args), said, args)
