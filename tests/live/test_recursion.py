"""A recursion is one line with the number of its calls, as many as the program says."""

import re
import subprocess

from backends import both_backends
from mleaktest import LONG, Case, parse_answers, parse_folded, parse_tree

# Calls with frames of 16 bytes, as functional languages have many of: 3,000 of them are 48 KiB.
DEEP, PROGRAM = 3000, b"""
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline, noipa)) void descend(int n)
{
	if (n > 1)
		descend(n - 1);
	else
		kept = malloc(47);
	__asm__ volatile("");
}
int main(void) { descend(3000); return 0; }
"""


@both_backends
class RecursionTest(Case):
    def setUp(self):
        super().setUp()
        self.trace, said = self.record(self.sample("recursion"))
        self.answer, = parse_answers(said)
        self.depth = self.answer.path.count("descend")

    def test_a_recursion_is_one_line(self):
        self.assertEqual(self.depth, 200)
        text = self.report(self.trace)
        self.assertEqual(text.count("descend"), 1)
        self.assertRegex(text, r"(?m)^ *[\d,]+ +[\d,]+  descend  x %d  " % self.depth)
        for node in parse_tree(text)[-4:]:
            self.assertEqual(node[:2], (self.answer.bytes, self.answer.blocks))
        self.assertRegex(self.report(self.trace, "--inverted"), r"  descend  x %d  " % self.depth)
        for args in ["--flat"], ["--growth"]:
            listed = self.report(self.trace, *args)
            self.assertEqual(len(re.findall(r"(?m)^\s+descend", listed)), 1)
            self.assertRegex(listed, r"(?m)^\s+\[the call above x %d\]$" % self.depth)
        self.assertIn("leak_here < descend x %d < main" % self.depth, self.mleak("top", self.trace).out)

    def test_all_are_shown_if_wanted_and_to_programs(self):
        for args in [], ["--flat"], ["--inverted"], ["--growth"]:
            text = self.report(self.trace, "--full-recursion", *args)
            self.assertEqual(len(re.findall(r"(?m)\bdescend\b(?! < )", text.partition("growing:")[0])),
                             self.depth)
        stack, = parse_folded(self.report(self.trace, "--folded"))
        self.assertEqual(stack.frames.count("descend"), self.depth)
        self.assertEqual(stack.bytes, self.answer.bytes)

    def test_callers_are_left_out_for_no_number_of_calls(self):
        source = self.write("deep.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", self.path("deep"), source],
                       check=True, timeout=LONG)
        trace, _ = self.record(self.path("deep"))
        for text in self.report(trace), self.mleak("top", trace).out:
            self.assertRegex(text, r"descend +x %s|descend x %d < main" % (format(DEEP, ","), DEEP))
        stack, = parse_folded(self.report(trace, "--folded"))
        self.assertEqual((stack.frames[0], stack.frames.count("descend"), stack.bytes), ("_start", DEEP, 47))
