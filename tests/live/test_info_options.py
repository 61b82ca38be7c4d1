"""`mleak info` tells how a trace was recorded, and of which processes."""

import re

from backends import both_backends
from mleaktest import Case


@both_backends
class InfoTest(Case):
    def info(self, trace):
        result = self.mleak("info", trace)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def test_the_options_of_the_recording_are_told(self):
        trace, _ = self.record("true", options=(
            "-s", "512K", "-z", "16", "-Z", "1M", "--stack-size", "4K", "--ring-size", "2M",
            "--redact"))
        shown = self.info(trace)
        for line in ("stacks +redacted", "sample +one allocation in 524,288 bytes on average",
                     "min-size +16", "max-size +1,048,576", "stack-size +4,096",
                     "ring-size +2,097,152"):
            self.assertRegex(shown, "(?m)^%s$" % line)

    def test_options_that_were_not_given_are_not_told(self):
        trace, _ = self.record("true")
        for name in "sample", "min-size", "max-size", "trigger", "guard":
            self.assertNotRegex(self.info(trace), "(?m)^%s " % name)

    def test_each_process_has_its_times(self):
        trace, _ = self.record("bash", "-c", "(sleep 0.3; true); sleep 0.1; true",
                               options=("--follow",))
        processes = re.findall(r"(?m)^process +(\d+) (\S+) (\S+) (.+)$", self.info(trace))
        self.assertEqual([p[3] for p in processes], ["bash", "bash", "sleep", "sleep"])
        self.assertEqual(processes[0][1], "0.000")
        child, first = processes[1], processes[2]
        self.assertGreater(float(child[2]) - float(child[1]), 0.3)
        self.assertLess(float(child[1]), float(first[1]))
