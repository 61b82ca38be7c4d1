"""Calls of an allocator that a signal handler interrupts, or leaves for good by longjmp, and the C
library's own calls meanwhile and afterwards: those are not the allocator's, and count."""

from backends import both_backends
from mleaktest import MLEAK_FAST, Case, parse_folded

# posix_memalign() faults where it writes its result, inside the C library.  The calls of strdup()
# that follow stand at a lower stack pointer, and leave its return address on the stack as it was.
PROGRAM = r"""
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define FRAME __attribute__((noinline, noipa))
static sigjmp_buf leave;
static int leaves, in_handler, later;
static void *page, *kept[1000];
FRAME char *copy_in_handler(void)
{
	char *copy = strdup("0123456789012345678901234567890123456789");
	in_handler += copy != NULL;
	return copy;
}
static void on_fault(int sig)
{
	(void)sig;
	if (leaves)
		siglongjmp(leave, 1);
	kept[500 + in_handler] = copy_in_handler();
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
FRAME int allocate(void)
{
	int err = posix_memalign(page, 64, 64);
	__asm__ volatile("" : : : "memory");
	return err;
}
FRAME void leave_for_good(void)
{
	mprotect(page, 4096, PROT_READ);
	if (!sigsetjmp(leave, 1))
		allocate();
}
FRAME void copy_later(void)
{
	char hole[8192]; /* what is left of the stack before stays in it */
	__asm__ volatile("" : : "r"(hole) : "memory");
	kept[later] = strdup("0123456789");
	later += kept[later] != NULL;
	__asm__ volatile("" : : "r"(hole) : "memory");
}
int main(void)
{
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGSEGV, on_fault);
	for (int i = 0; i < 37; i++) {
		leaves = 1;
		leave_for_good();
		for (int n = 0; n < 3; n++)
			copy_later();
		leaves = 0;
		mprotect(page, 4096, PROT_READ);
		allocate();
	}
	printf("%d %d\n", later, in_handler);
	return 0;
}
"""


@both_backends
class LeftCallTest(Case):
    program = MLEAK_FAST

    def test_what_the_c_library_allocates_after_a_call_was_left_or_within_one_counts(self):
        with open(self.path("left.c"), "w") as file:
            file.write(PROGRAM)
        self.finish(self.spawn(["gcc", "-O2", "-g", "-o", "left", "left.c"]))
        trace, out = self.record(self.path("left"))
        later, in_handler = map(int, out.split())
        self.assertEqual((later, in_handler), (3 * 37, 37))
        found = {}
        for stack in parse_folded(self.mleak("report", "--format=folded", trace).out):
            for name in stack.frames:
                found[name] = found.get(name, 0) + stack.bytes
        self.assertEqual(found.get("copy_later"), later * len("0123456789\0"))
        self.assertEqual(found.get("copy_in_handler"), in_handler * 41)


if __name__ == "__main__":
    import unittest
    unittest.main()
