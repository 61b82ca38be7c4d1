"""Traces of earlier versions are read, and give what they gave."""

import glob
import os

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
                    self.assertEqual((result.status, result.out, result.err), (0, expected, ""))
