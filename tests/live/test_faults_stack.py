"""A stack whose end is near, and nothing readable above it, is taken up to its end and no further."""

import re

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_totals

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
enum { PAGE = 4096, SIZE = 4 * PAGE };
static void *volatile kept;
static ucontext_t back, worker;
__attribute__((noinline, noipa)) static void leak_near_the_end(void)
{
	for (int i = 0; i < 23; i++)
		kept = malloc(47);
}
int main(void)
{
	static char line[64];
	char *room = mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, line, _IOFBF, sizeof(line));
	mprotect(room + SIZE, PAGE, PROT_NONE);
	getcontext(&worker);
	worker.uc_stack.ss_sp = room;
	worker.uc_stack.ss_size = SIZE;
	worker.uc_link = &back;
	makecontext(&worker, leak_near_the_end, 0);
	swapcontext(&back, &worker);
	printf("%lx\n", (unsigned long)room + SIZE);
	return 0;
}
"""


@needs_bpf
class StackEndTest(FaultCase):
    def test_nothing_above_the_end_is_missed_or_counted_as_cut(self):
        program = self.compile("program", source=PROGRAM)
        result = self.mleak("record", "--raw-stack", "-o", self.path("x.mlk"), "--", program)
        self.assertEqual(result.status, 0, result.err)
        end = int(result.out, 16)
        events = re.findall(r"^  ALLOC flags (\w+),.* size 47, func malloc, .* regs ([^,]*), "
                            r"stack (\d+),", self.dump(), re.M)
        self.assertEqual(len(events), 23)
        for flags, regs, length in events:
            sp = int(regs.split()[7], 16)
            self.assertLess(end - sp, 4096)
            self.assertEqual(sp + int(length), end, (flags, regs, length))
        text = self.report(self.path("x.mlk"))
        totals = parse_totals(text)
        self.assertIn("leak_near_the_end", text)
        self.assertEqual(totals.outstanding.bytes % 4096, 23 * 47)
        self.assertIn("complete stacks 100.0 %", text)
