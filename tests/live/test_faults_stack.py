"""A stack whose end is near, and nothing readable above it, is taken up to its end and no further."""

import re

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded, parse_totals

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

# Frames with a buffer that is not used yet: the pages within it are not in memory.
HOLES = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
static void *volatile kept;
__attribute__((noinline, noipa)) static void leak(size_t size)
{
	kept = malloc(size);
}
__attribute__((noinline, noipa)) static void beyond_a_hole(size_t hole, size_t size)
{
	char *buffer = alloca(hole);
	uintptr_t first = ((uintptr_t)buffer + 4095) & -4096, end = ((uintptr_t)buffer + hole) & -4096;
	madvise((void *)first, end - first, MADV_DONTNEED);
	leak(size);
	__asm__ volatile("" : : "r"(buffer) : "memory");
}
static void *run(void *arg)
{
	for (size_t hole = 8192, size = 1009; hole < 60000; hole += 3301, size++)
		beyond_a_hole(hole, size);
	return arg;
}
int main(void)
{
	pthread_t thread;
	run(NULL);
	return pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL);
}
"""
HOLES_BYTES = range(8192, 60000, 3301)
STACK_FAULT = 1 << 2  # DWUNW_EVENT_STACK_FAULT
PATH_BEYOND = ["run", "beyond_a_hole", "leak"]


@needs_bpf
class StackEndTest(FaultCase):
    def test_what_lies_beyond_pages_that_are_not_in_memory_is_read(self):
        program = self.compile("holes", "-fno-stack-clash-protection", "-pthread", source=HOLES)
        result = self.mleak("record", "--raw-stack", "-o", self.path("x.mlk"), "--", program)
        self.assertEqual(result.status, 0, result.err)
        events = re.findall(r"^  ALLOC flags ([^,]+),.* size (\d+), func malloc, .* stack (\d+),",
                            self.dump(), re.M)
        sizes = [1009 + i for i in range(len(HOLES_BYTES))]
        for hole, block in zip(HOLES_BYTES, sizes):
            mine = [(flags, int(stack)) for flags, size, stack in events if int(size) == block]
            self.assertEqual(len(mine), 2, "the main thread and the other")
            for flags, stack in mine:
                self.assertGreater(stack, hole)
                self.assertTrue(int(flags, 16) & STACK_FAULT, (flags, stack, hole))
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks if s.frames[-3:] == PATH_BEYOND), 2 * sum(sizes))
        self.assertIn("complete stacks 100.0 %", self.report(self.path("x.mlk")))

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
