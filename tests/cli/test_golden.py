"""Traces of earlier versions are read, and give what they gave."""

import glob
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
