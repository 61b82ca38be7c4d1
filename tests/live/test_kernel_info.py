"""`mleak info` of a trace of the kernel: what it was recorded of and how, and no word of a process."""

import os
import re

import trace_reader
from kerneltest import KernelCase


class KernelInfoTest(KernelCase):
    def facts(self, trace):
        """The lines of `mleak info`, by their first word."""
        result = self.mleak("info", trace)
        self.assertEqual((result.status, result.err), (0, ""))
        facts = {}
        for line in result.out.splitlines():
            name, text = re.fullmatch(r"(\S+(?: lost)?) +(.*)", line).groups()
            facts.setdefault(name, []).append(text)
        return facts

    def counted(self, trace):
        """How many there are of each by the second reader of traces."""
        dump = "\n".join(trace_reader.dump(trace, True))
        origins = {number: rest for number, *rest in re.findall(
            r"(?m)^  ORIGIN (\d+), tgid (\d+), .*\n    cgroup (.*)\n    cache ?(.*)$", dump)}
        allocs = re.findall(r"(?m)^  ALLOC .* regs ([0-9a-f ]+), stack.*((?:\n    .*)*)", dump)
        used = {str(int(regs.split()[3], 16)) for regs, _ in allocs}
        columns = list(zip(*(origins[number] for number in used)))
        stacks = {(regs.split()[16], stack) for regs, stack in allocs}
        return [len(allocs), len(stacks)] + [len(set(column) - {"", "0"}) for column in columns]

    def test_it_tells_of_the_kernel(self):
        trace, _ = self.record_while("make", options=["--older", "30ms", "-z", "8"])
        facts = self.facts(trace)
        self.assertEqual(facts["of"], ["the kernel"])
        self.assertEqual(facts["kernel"], [os.uname().release])
        self.assertEqual(facts["host"], [os.uname().nodename])
        self.assertEqual(facts["with"], ["BPF on the kernel's tracepoints, blocks that lived for a look "
                                         "each 5 seconds, --older 0.03s, --comm " + self.comm])
        self.assertEqual((facts["frames"], facts["min-size"]), (["64"], ["8"]))
        self.assertRegex(" ".join(facts["skipped"]),
                         r"\d+ allocations that --cache, --comm, --cgroup or a size left out")
        for name in "pid", "command", "exe", "from", "stack-size", "process":
            self.assertNotIn(name, facts)
        self.assertIn("%d %s" % (self.target.pid, self.comm), facts["thread"])
        counts = [facts[name] for name in ("allocations", "stacks", "processes", "cgroups", "caches")]
        self.assertEqual(counts, [["{:,}".format(number)] for number in self.counted(trace)])
        self.assertEqual(facts["processes"], ["1"])

    def test_a_report_does_not_tell_of_a_process_either(self):
        trace, _ = self.record_while("make", options=["--events"])
        self.assertIn("all events", self.facts(trace)["with"][0])
        self.assertRegex(self.shown(trace).splitlines()[0], r"^trace '.*': the kernel, [\d.]+ s on ")
        self.assertIn("memory of the kernel on ", self.shown(trace, "--format=html"))


del KernelCase
