"""Programs begun by exec that bring another allocator, as by LD_PRELOAD: what was not seen is told."""

import re

from mleaktest import MLEAK_FAST, Case, needs_bpf, parse_totals

# An allocator of its own, which never gives back.
OWN = r"""
#include <stddef.h>
#include <string.h>
static char room[1 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t size)
{
	char *block = room + used;
	used += (size + 31) & ~(size_t)15;
	*(size_t *)block = size;
	return block + 16;
}
void *calloc(size_t nr, size_t size) { return malloc(nr * size); }
void free(void *block) { (void)block; }
void *realloc(void *old, size_t size)
{
	void *block = malloc(size);
	if (old)
		memcpy(block, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size);
	return block;
}
"""

# One in front of the C library's.
FRONT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static void *(*real)(size_t);
static unsigned long calls;
void *malloc(size_t size)
{
	void *block;
	if (!real)
		real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	block = real(size);
	calls++; /* no jump to it */
	return block;
}
"""

# Allocates so many blocks, with a pause behind each.
PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		kept = malloc(211);
		if (argc > 2)
			usleep(500);
	}
	_exit(0);
}
"""


@needs_bpf
class ExecAllocatorTest(Case):
    program = MLEAK_FAST

    def compile(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        self.finish(self.spawn(["gcc", "-O1", "-fno-builtin", "-o", name, name + ".c", *flags]))
        return self.path(name)

    def count(self, *argv):
        """How many blocks of the program were seen, how many events lost, and was a beginning told of
        that is missing?"""
        result = self.finish(self.start_mleak("record", "-o", "x.mlk", *argv))
        self.assertEqual(result.status, 0, result.err)
        seen = len(re.findall(r"ALLOC .* size 211,", self.report("x.mlk", "--dump")))
        return (seen, parse_totals(self.report("x.mlk")).lost,
                re.search(r"after (its|their) start", result.err) is not None)

    def test_one_that_ends_before_it_is_probed_is_told_of(self):
        library = self.compile("own.so", OWN, "-shared", "-fPIC")
        program = self.compile("program", PROGRAM)
        for follow in ([], ["--follow"]) * 3:
            seen, lost, told = self.count(*follow, "--", "env", "LD_PRELOAD=" + library, program, "5")
            self.assertTrue(seen == 5 or lost or told, (seen, lost, told))

    def test_one_in_front_of_the_c_library_s_is_seen_from_its_start(self):
        library = self.compile("front.so", FRONT, "-shared", "-fPIC")
        program = self.compile("program", PROGRAM)
        seen, lost, _ = self.count("--", "env", "LD_PRELOAD=" + library, program, "1000", "pause")
        self.assertLessEqual(seen, 1000)
        self.assertGreaterEqual(seen + lost, 1000)
