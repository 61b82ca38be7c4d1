"""Traces of earlier versions are read, and give what they gave."""

import csv
import glob
import io
import json
import os
import re

from mleaktest import TESTS, Case

GOLDEN = os.path.join(TESTS, "golden")


class GoldenTest(Case):
    def test_reports_are_what_they_were(self):
        traces = glob.glob(os.path.join(GOLDEN, "*.mlk"))
        self.assertNotEqual(traces, [])
        for trace in traces:
            for suffix, options in (("folded", []), ("addresses", ["--addresses"])):
                with self.subTest(trace=os.path.basename(trace), output=suffix):
                    with open(trace[:-len("mlk")] + suffix, encoding="utf-8") as file:
                        expected = file.read()
                    result = self.mleak("report", "--folded", *options, trace)
                    said = re.sub(r"^mleak: warning: \d+ overruns of blocks .*\n", "", result.err)
                    self.assertEqual((result.status, result.out, said), (0, expected, ""))

    def test_overruns_are_those_that_the_program_told_of(self):
        trace = os.path.join(GOLDEN, "v1.3-overrun.mlk")
        with open(trace[:-len("mlk")] + "said", encoding="utf-8") as file:
            said = re.findall(r"found=(\S+) size=(\d+) offset=(-?\d+) len=(\d+) path=(\S+)$",
                              file.read(), re.M)
        sites = json.loads(self.mleak("report", "--format=json", trace).out)["overruns"]
        found = []
        for site in sites["first_sites"]:
            names = [frame["function"] for frame in site["block"]["frames"]]
            until = names.index("main" if "main" in names else "in_thread")
            offset = -site["distance"] if site["side"] != "behind" else \
                site["size"] + site["distance"]
            found.append((site["found"]["at"], str(site["size"]), str(offset), str(site["length"]),
                          ";".join(names[until::-1])))
        self.assertEqual(len(said), 10)
        self.assertEqual(sorted(found), sorted(said))

    def test_pages_are_what_the_program_told_of_them(self):
        """It reserved pages, used some, gave some of these back and used some of those again; with two
        seconds between, which are enough that the recorder saw the latter."""
        trace = os.path.join(GOLDEN, "v1.9-pages.mlk")
        with open(trace[:-len("mlk")] + "said", encoding="utf-8") as file:
            said = file.read().splitlines()
        self.assertEqual(len(said), 4)
        events = [float(line.split()[0]) for line in self.mleak("script", trace).out.splitlines()]
        moments = [at + 0.2 for at in events[:4]]
        for moment, line in zip(moments, said):
            totals = json.loads(self.mleak("report", "--format=json", "--at", "%.3f" % moment, trace).out)["totals"]
            sums = tuple(totals[name]["bytes"] // 4096 for name in ("outstanding", "reserved", "given_back"))
            self.assertEqual("pages: in_use=%d reserved=%d given_back=%d" % sums, line)

    def test_memory_is_what_the_program_read_of_itself(self):
        """It took 5 MiB, then read a file of 70 MiB, then took 31 MiB that children would share."""
        trace = os.path.join(GOLDEN, "v1.8-memory.mlk")
        with open(trace[:-len("mlk")] + "said", encoding="utf-8") as file:
            said = [4096 * int(line.split()[1]) for line in file]
        timeline = json.loads(self.mleak("report", "--timeline", "--format=json", trace).out)
        (process,) = timeline["memory_samples"]
        self.assertEqual((process["pid"], process["taken"], process["failed"]),
                         (timeline["trace"]["pid"], 14, 0))
        for resident in said:
            # the program read it between two samples, and processors keep some pages to themselves
            closest = min(process["samples"], key=lambda sample: abs(sample.get("rss", 0) - resident))
            self.assertAlmostEqual(closest["rss"], resident, delta=1 << 18)
            self.assertEqual(closest["rss"],
                             closest["anonymous"] + closest["file"] + closest["shared"])
        self.assertEqual(process["samples"][-1].get("exited"), True)
        self.assertEqual(timeline["memory"], [{key: process[key] for key in process if key != "samples"}])
        self.assertEqual(process["last"], process["samples"][-2])
        # each interval has what there was at its end; the last one, in which it ended, what was before
        for interval in timeline["intervals"]:
            before = [sample for sample in process["samples"]
                      if sample["at_ns"] <= interval["until_ns"] and "rss" in sample]
            self.assertEqual(interval["rss_bytes"], before[-1]["rss"])
        rows = csv.DictReader(io.StringIO(self.mleak("report", "--timeline", "--format=csv", trace).out))
        self.assertEqual([int(row["rss_bytes"]) for row in rows],
                         [interval["rss_bytes"] for interval in timeline["intervals"]])
        text = self.mleak("report", "--timeline", "--bytes", trace).out
        self.assertRegex(text, r"(?m)^ +until +bytes then +most meanwhile +RSS then$")
        self.assertIn("{:>16,}  ###".format(timeline["intervals"][-1]["rss_bytes"]), text)

    def test_growth_that_is_no_block_is_told(self):
        """Until the 31 MiB, which are a block, RSS grew by 75 MiB, and by 5 in blocks."""
        trace = os.path.join(GOLDEN, "v1.8-memory.mlk")
        told = ("grew by 79,175,680 bytes, most of it files; at most 5,243,152 bytes were outstanding:\n"
                "    it is not malloc\n")
        at = ["--at", "3.6s"]
        for options, expected in (at, True), ([*at, "--by", "module"], True), (["--at", "1s"], False), \
                (["--between", "1,3.6"], False), ([*at, "--thread", "memory"], False):
            with self.subTest(options=options):
                report = self.mleak("report", *options, trace).out
                self.assertEqual(told in report, expected, report)
                self.assertEqual("  RSS " in report, expected)

    def test_a_third_of_a_second_says_nothing_of_an_hour(self):
        report = self.mleak("report", os.path.join(GOLDEN, "v1.0-cxx.mlk")).out
        self.assertRegex(report, r"(?m)^growing: not told of less than a second; to see how stacks grew: ")
        self.assertNotIn("MiB/h", report)

    def test_stacks_of_the_kernel_go_on_in_the_program(self):
        """It made 223 eventfds by one way through its functions, and 97 by another."""
        trace = os.path.join(GOLDEN, "v1.7-kernel-user.mlk")
        rows = csv.DictReader(io.StringIO(self.mleak("report", "--format=csv", trace).out))
        made = {way: int(row["outstanding_blocks"]) for row in rows
                for way in re.findall(r";main;make_both;(by_[ab];[make_on;]*);eventfd;entry_SYSCALL_64\w*;.*"
                                      r";do_eventfd;__kmalloc_cache_noprof$", row["stack"])}
        self.assertEqual(made, {"by_a" + 4 * ";make_one": 223, "by_b" + 2 * ";make_one": 97})

    def test_blocks_of_the_kernel_are_those_that_the_program_held(self):
        trace = os.path.join(GOLDEN, "v1.6-kernel.mlk")
        with open(trace[:-len("mlk")] + "said", encoding="utf-8") as file:
            held = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", file.read())}
        rows = csv.DictReader(io.StringIO(self.mleak("report", "--by", "cache", "--format=csv", trace).out))
        blocks = {row["cache"]: int(row["outstanding_blocks"]) for row in rows}
        # The array with memory for each CPU is a file, too; a pipe has two.
        anonymous = held["eventfds"] + held["epolls"] + 1
        made = anonymous + held["sockets"] + held["files"]
        expected = {"filp": made + 2 * held["pipes"], "dentry": made + held["pipes"],
                    "percpu": held["percpu"], "kmalloc-64": held["eventfds"],
                    "kmalloc-256": held["epolls"], "sock_inode_cache": held["sockets"],
                    "shmem_inode_cache": held["files"], "kmalloc-1k": held["pipes"]}
        self.assertEqual({name: blocks.get(name) for name in expected}, expected)
