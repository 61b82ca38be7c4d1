"""Recordings that are asked whose the resident memory is, beside what smaps says of it."""

import collections
import json
import re
import subprocess

from faulttest import FaultCase
from reachtest import ReachCase

PAGE = 4096
MIB = 1 << 20


def rollup(pid):
    """Bytes in memory, as the kernel adds them up."""
    with open("/proc/%d/smaps_rollup" % pid) as smaps:
        return int(re.search(r"(?m)^Rss:\s+(\d+) kB", smaps.read())[1]) * 1024


class ResidentCase(ReachCase, FaultCase):
    def resident(self, *options):
        answer = json.loads(self.report(self.path("x.mlk"), "--resident", "--format=json", *options))
        self.assertEqual(answer["schema"], "mleak-resident")
        self.assertEqual(len(answer["processes"]), 1)
        return answer["processes"][0]

    def functions(self, row):
        return {frame["function"] for frame in row["frames"]}

    def of_function(self, process, name, kind=None):
        return sum(row["bytes"] for row in process["rows"]
                   if "frames" in row and name in self.functions(row) and kind in (None, row["kind"]))

    def assert_adds_up(self, process):
        self.assertLessEqual(abs(sum(process["kinds"].values()) + process["changed"] - process["rss"]),
                             max(process["changed"], 64 * PAGE))
        self.assertEqual(process["named"], sum(process["kinds"].values()) - process["kinds"]["other"])

    def assert_holes_are_named(self):
        """Every hundredth block of resident_target is kept: the stack of these is that of nearly empty pages."""
        holes = self.resident()["nearly_empty"]
        self.assertIn("get_kept", self.functions(holes["stacks"][0]))
        # nearly each of them stands in a page of its own, or in two
        self.assertGreater(holes["pages"], 900)
        self.assertGreater(holes["stacks"][0]["bytes"], 0.9 * 1009 * (PAGE - 400))

    def jemalloc(self):
        """What links a program with it."""
        option = "-l:libjemalloc.so.2"
        if subprocess.run(["gcc", "-shared", "-o", self.path("x.so"), option], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("jemalloc is not installed")
        return ["-Wl,--no-as-needed", option]

    def assert_keepers(self, process, said, recorded):
        """What tests/live/resident_kept.c has mapped is that of what points to it: of a block, if that is
        @recorded, else of the variable that the block leads to."""
        told = {name: int(number) for name, number in map(str.split, said)}
        self.assert_adds_up(process)
        by_name = collections.Counter()
        for row in process["rows"]:
            if row["kind"] == "kept":
                by_name[row["keeper"]["name"] if "keeper" in row else "map_all" in self.functions(row)] += row["bytes"]
        self.assertEqual(by_name["variable"], told["variable"] + told["mapping"])
        self.assertEqual(by_name["local"], told["local"])
        if recorded:
            self.assertEqual(by_name[True], told["block"] + told["blocks"])
        else:
            self.assertEqual((by_name["block"], by_name["blocks"]), (told["block"], told["blocks"]))
        self.assertGreaterEqual(process["kinds"]["other"], told["hidden"])
        self.assertLess(process["kinds"]["other"], told["hidden"] + 64 * PAGE)
