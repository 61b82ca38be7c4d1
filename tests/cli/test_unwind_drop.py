"""`mleak unwind --drop-raw`: the same reports, of a trace without registers and stacks."""

import os
import re

from mleaktest import takes_long
from unwindtest import EVENTS, GOLDEN, VIEWS, UnwindCase, chunks_of

STACKS = 9


class DropRawTest(UnwindCase):
    def of_processes(self):
        """The golden traces but those of the kernel's memory."""
        return [t for t in GOLDEN if not re.search(r"(?m)^of +the kernel", self.mleak("info", t).out)]

    def drop(self, trace):
        result = self.mleak("unwind", "--drop-raw", "-o", self.unwound, trace)
        self.assertEqual(result.status, 0, result.err)

    @takes_long
    def test_all_views_are_the_same(self):
        self.assertGreaterEqual(len(self.of_processes()), 3)
        for trace in self.of_processes():
            with self.subTest(trace=os.path.basename(trace)):
                self.drop(trace)
                self.assert_same_reports(trace, self.unwound, VIEWS)
                self.assertEqual(self.mleak("script", self.unwound).out, self.mleak("script", trace).out)
                self.assertRegex(self.mleak("info", self.unwound).out, r"(?m)^stacks +dropped$")

    def test_registers_and_stacks_are_gone(self):
        """As the reader says that was made of the specification."""
        self.drop(self.trace)
        text = self.dump_whole(self.unwound, full=True)
        events = re.findall(r"(?m)^  ALLOC .*(?:\n    .*)*", text)
        self.assertGreater(len(events), 0)
        for event in events:
            self.assertNotRegex(event, r" stack [1-9]", event)
            for value in re.findall(r"regs ([0-9a-f ]*)", event):
                self.assertEqual(set(value.split()), {"0"}, event)
        self.assertIn("  dropped 1\n", text)
        with open(self.unwound, "rb") as file:
            types = [chunk.type for chunk in chunks_of(file.read())]
        self.assertIn(EVENTS, types)
        self.assertNotIn(STACKS, types)

    def test_it_cannot_be_unwound_again(self):
        self.drop(self.trace)
        with open(self.unwound, "rb") as file:
            content = file.read()
        for args in [], ["--drop-raw"], ["-o", "other.mlk"]:
            result = self.mleak("unwind", *args, self.unwound)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="cannot be unwound again")
        with open(self.unwound, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertFalse(os.path.exists(self.path("other.mlk")))

    def test_a_trace_of_the_kernel_is_refused(self):
        kernel = [t for t in GOLDEN if t not in self.of_processes()]
        self.assertGreater(len(kernel), 0)
        for trace in kernel:
            result = self.mleak("unwind", "--drop-raw", "-o", self.unwound, trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="of the kernel's memory")
            self.assertFalse(os.path.exists(self.unwound))
