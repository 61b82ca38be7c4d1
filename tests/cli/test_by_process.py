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

    def test_of_what_there_is_not_it_is_said_that_there_is_none(self):
        trace = self.write("x.mlk", forge.small([(0x1000, 47)]).bytes())
        for key in "cache", "cgroup", "order", "flags":
            result = self.mleak("report", "--by", key, trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="no memory of the kernel")
