"""Blocks that a coroutine allocates, on a stack of its own, have all of its callers."""

import subprocess

from backends import both_backends
from mleaktest import LONG, Case, parse_folded, parse_totals

CALLS, BLOCKS, SIZE = 21, 23, 47
PROGRAM = b"""
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static ucontext_t home, other;
static void *volatile kept;
__attribute__((noinline, noipa)) static void leak_here(void) { kept = malloc(47); }
__attribute__((noinline, noipa)) static void descend(int n)
{
	char used[40];
	memset(used, n, sizeof(used));
	if (n > 1)
		descend(n - 1);
	else
		leak_here();
	__asm__ volatile("" : : "r"(used) : "memory");
}
static void in_coroutine(void)
{
	for (;;) {
		descend(21);
		swapcontext(&other, &home);
	}
}
int main(void)
{
	getcontext(&other);
	other.uc_stack.ss_sp = aligned_alloc(4096, 65536);
	other.uc_stack.ss_size = 65536;
	makecontext(&other, in_coroutine, 0);
	for (int i = 0; i < 23; i++)
		swapcontext(&home, &other);
	return 0;
}
"""


@both_backends
class CoroutinesTest(Case):
    def recorded(self, *options):
        """The trace of the program, of which nothing is lost."""
        source = self.write("program.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-o", self.path("program"), source], check=True, timeout=LONG)
        trace, _ = self.record(self.path("program"), options=options)
        totals = parse_totals(self.report(trace))
        self.assertEqual((totals.outstanding, totals.lost), ((BLOCKS + 1, BLOCKS * SIZE + 65536), 0))
        return trace

    def test_all_callers_on_the_page_are_there(self):
        trace = self.recorded()
        totals = parse_totals(self.report(trace))
        self.assertEqual((totals.complete, totals.of), (BLOCKS + 1, BLOCKS + 1))
        stacks = [stack for stack in parse_folded(self.report(trace, "--format=folded"))
                  if stack.frames[-1] == "leak_here"]
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        for stack in stacks:
            self.assertEqual(stack.frames,
                             ["__start_context", "in_coroutine", *CALLS * ["descend"], "leak_here"])

    def test_a_small_limit_on_stacks_is_obeyed(self):
        self.recorded("--stack-size", "128")
