"""Programs linked with libmleak-wrap.a, recorded by something else: it has no frame in their stacks."""

import json
import subprocess

from mleaktest import MLEAK_FAST, needs_bpf, parse_answers
from test_preload import PreloadCase

# Each function says what it leaked; the second argument of LEAK() is one block of SIZE bytes.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define BLOCKS 23
#define PAGES 4096
void *volatile kept[1024];
int n;
size_t volatile too_many = SIZE_MAX / 2;
#define LEAK(name, size, call, under)                                                   \
	__attribute__((noinline)) void name(int count)                                  \
	{                                                                               \
		for (int i = 0; i < count; i++)                                         \
			kept[n++] = call;                                               \
	}                                                                               \
	static void say_##name(int count)                                               \
	{                                                                               \
		printf("answer: blocks=%d bytes=%d path=" under #name "\n", count,      \
		       count * (size));                                                 \
	}
static void *by_posix(size_t size)
{
	void *p = NULL;
	return posix_memalign(&p, 64, size) ? NULL : p;
}
static void *map(size_t size)
{
	return mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
LEAK(early, 41, malloc(41), "")
LEAK(by_malloc, 47, malloc(47), "main;")
LEAK(by_calloc, 3 * 53, calloc(3, 53), "main;")
LEAK(by_realloc, 61, realloc(NULL, 61), "main;")
LEAK(by_growing, 199, realloc(malloc(7), 199), "main;")
LEAK(by_reallocarray, 5 * 67, reallocarray(NULL, 5, 67), "main;")
LEAK(by_posix_memalign, 71, by_posix(71), "main;")
LEAK(by_aligned_alloc, 128, aligned_alloc(64, 128), "main;")
LEAK(by_memalign, 73, memalign(64, 73), "main;")
LEAK(by_valloc, 79, valloc(79), "main;")
LEAK(by_pvalloc, 83, pvalloc(83), "main;")
LEAK(by_mmap, 3 * PAGES, map(3 * PAGES), "main;")
LEAK(by_mremap, 5 * PAGES, mremap(map(PAGES), PAGES, 5 * PAGES, MREMAP_MAYMOVE), "main;")
#define ALL(do)                                                                           \
	do(by_malloc) do(by_calloc) do(by_realloc) do(by_growing) do(by_reallocarray)     \
	do(by_posix_memalign) do(by_aligned_alloc) do(by_memalign) do(by_valloc)          \
	do(by_pvalloc) do(by_mmap) do(by_mremap)
#define CALL(name) name(BLOCKS);
#define SAY(name) say_##name(BLOCKS);
/* Before the archive's own, which the linker puts last. */
__attribute__((constructor)) static void first(void)
{
	early(BLOCKS);
}
int main(void)
{
	ALL(CALL)
	errno = 0;
	if (reallocarray(NULL, too_many, 4) || errno != ENOMEM)
		return 5;
	for (int i = 0; i < 100; i++)
		free(malloc(307));
	say_early(BLOCKS);
	ALL(SAY)
	return 0;
}
"""

# An allocator without the functions that not every one has.
OWN = r"""
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char arena[1 << 24];
static size_t used;
void *aligned_alloc(size_t align, size_t size)
{
	size_t at;
	align = align < 16 ? 16 : align;
	at = ((size_t)arena + used + align - 1) / align * align - (size_t)arena;
	if (size > sizeof(arena) || at > sizeof(arena) - size)
		return NULL;
	used = at + size;
	return arena + at;
}
void *malloc(size_t size)
{
	return aligned_alloc(16, size);
}
void *calloc(size_t nr, size_t size)
{
	return aligned_alloc(16, nr * size);
}
void *realloc(void *old, size_t size)
{
	return aligned_alloc(16, size);
}
int posix_memalign(void **out, size_t align, size_t size)
{
	return (*out = aligned_alloc(align, size)) ? 0 : ENOMEM;
}
void free(void *block)
{
}
size_t malloc_usable_size(void *block)
{
	return 0;
}
static void say(const char *name, void *block, size_t size, void *next)
{
	printf("%s: aligned %d, room %d\n", name, (uintptr_t)block % 4096 == 0,
	       (char *)next - (char *)block >= (long)size);
}
int main(void)
{
	char *a = memalign(4096, 300), *b = valloc(5000), *c = pvalloc(4097), *d = malloc(1);
	say("memalign", a, 300, b);
	say("valloc", b, 5000, c);
	say("pvalloc", c, 8192, d);
}
"""

# Of who frees a block there is a stack where the block was overrun.
OVERRUN = r"""
#include <stdlib.h>
__attribute__((noinline)) void beyond(char *p)
{
	((volatile char *)p)[47] = 'x';
	free(p);
}
int main(void)
{
	beyond(malloc(47));
	return 0;
}
"""


class WrappedTest(PreloadCase):
    program = MLEAK_FAST

    def build(self, source, *how):
        flags = subprocess.run([self.program, "--wrap-flags"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        return self.compile("program", source, *how, *flags)

    def check(self, program):
        trace, out = self.record(program)
        answers = parse_answers(out)
        self.assertEqual(len(answers), 13)
        totals = self.assert_answers(answers, trace)
        self.assert_whole(totals)
        for options in ([], ["--format=folded"]):
            self.assertNotRegex(self.report(trace, *options), r"wrap_|wrap\.c|stubs\.S")

    def test_a_dynamic_program_by_the_library(self):
        for how in (["-no-pie"], ["-pie", "-fPIE"]):
            with self.subTest(how):
                self.check(self.build(PROGRAM, *how))

    def test_who_frees_is_the_program(self):
        trace, _ = self.record(self.build(OVERRUN), options=["--guard"])
        site, = json.loads(self.report(trace, "--format=json"))["overruns"]["first_sites"]
        self.assertEqual([[frame["function"] for frame in site[of]["frames"][:until]]
                          for of, until in (("found", 2), ("block", 1))],
                         [["beyond", "main"], ["main"]])

    def test_an_allocator_without_some_of_the_functions(self):
        for how in (["-static"], ["-static-pie", "-fPIE"]):
            with self.subTest(how):
                program = self.build(OWN, *how)
                out = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
                self.assertEqual(out, "".join("%s: aligned 1, room 1\n" % name for name in
                                              ("memalign", "valloc", "pvalloc")))


@needs_bpf
class WrappedBpfTest(WrappedTest):
    options = ("--backend", "bpf")
    as_user = {}

    test_a_dynamic_program_by_the_library = None
    test_an_allocator_without_some_of_the_functions = None
    test_who_frees_is_the_program = None

    def test_programs(self):
        for how in (["-no-pie"], ["-pie", "-fPIE"], ["-static"], ["-static-pie", "-fPIE"]):
            with self.subTest(how):
                self.check(self.build(PROGRAM, *how))


del PreloadCase
