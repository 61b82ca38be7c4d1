"""`mleak report --by process` of processes, and what only the kernel's memory can be summed up by."""

import json

import forge
from mleaktest import Case

SECOND = forge.SECOND


class ByProcessTest(Case):
    def test_a_process_and_its_number(self):
        chunk = forge.events([(0x1000, 47), (0x2000, 53)])
        trace = self.write("x.mlk", forge.Trace([forge.meta(comm="a name"), chunk,
                                                 forge.end(1, chunk.last + SECOND)]).bytes())
        document = json.loads(self.report(trace, "--by", "process", "--format=json"))
        self.assertEqual([(group["process"], group["outstanding"]) for group in document["groups"]],
                         [("7 a name", {"bytes": 100, "blocks": 2})])
        self.assertRegex(self.report(trace, "--by", "process"), r"(?m)^ +100 +2  7 a name$")
        self.assertIn('100,2,"7 a name"\r\n', self.report(trace, "--by", "process", "--format=csv"))

    def test_processes_without_a_name(self):
        """As a trace of which the recorder was killed has them, and one of programs that took their name away."""
        first, second, third = (forge.events([(0x1000 * pid, 10 * pid)], first=SECOND + pid, tgid=pid, tid=pid)
                                for pid in (7, 8, 9))
        end = forge.end(1, 2 * SECOND)
        trace = self.write("x.mlk", forge.Trace([forge.meta(), first, second, third, end]).bytes())
        text = self.report(trace)
        self.assertIn("\n  3 processes without a name: 3 allocations, ", text)
        self.assertRegex(text, r"(?m)^ +240 +3  without a name \(3 processes\)$")
        each = self.report(trace, "--per-process")
        self.assertIn("\n  process 8: 1 allocation, ", each)
        self.assertNotRegex(text + each, r"process(es)? process\b")

    def test_of_what_there_is_not_it_is_said_that_there_is_none(self):
        trace = self.write("x.mlk", forge.small([(0x1000, 47)]).bytes())
        for key in "cache", "cgroup", "order", "flags":
            result = self.mleak("report", "--by", key, trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="no memory of the kernel")
