"""An operator new of the allocator's own is seen, and may throw: it has no return probe, which an
exception could not pass.  One that calls malloc is not probed."""

import os
import re
import shutil

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
THROWS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")  # mimalloc's aborts by itself

SOURCE = r"""
#include <new>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static void leak_by_new() { kept = operator new(47); }
__attribute__((noinline)) static void leak_by_malloc() { kept = malloc(53); }
int main(int argc, char **)
{
	volatile size_t huge = (size_t)1 << 60;
	int caught = 0, status = 1;
	if (argc > 2 && fork()) {
		wait(&status);
		return status ? 1 : 0;
	}
	for (int i = 0; i < 23; i++) {
		leak_by_new();
		leak_by_malloc();
		try {
			if (argc > 1)
				kept = operator new(huge);
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	printf("caught %d\n", caught);
	return 0;
}
"""

# An allocator whose operators do the work by themselves, to be linked in.
ALLOCATOR = r"""
#include <stddef.h>
#include <string.h>
static _Alignas(16) char room[64 << 20];
static size_t used;
static inline void *take(size_t size)
{
	char *block = room + used + 16;
	size = (size + 15) & ~(size_t)15;
	if (size > sizeof(room) - used - 16)
		return 0;
	*(size_t *)(block - 16) = size;
	used += size + 16;
	return block;
}
void *malloc(size_t size) { return take(size); }
void *_Znwm(size_t size) { return take(size); }
void free(void *block) { (void)block; }
void _ZdlPv(void *block) { (void)block; }
void _ZdlPvm(void *block, size_t size) { (void)block; (void)size; }
void *calloc(size_t n, size_t size) { return take(n * size); }
void *memalign(size_t align, size_t size) { (void)align; return take(size); }
void *realloc(void *block, size_t size)
{
	void *now = take(size);
	size_t old = block ? ((size_t *)block)[-2] : 0;
	if (now && block)
		memcpy(now, block, old < size ? old : size);
	return now;
}
"""
STATIC = (("libjemalloc.a", ("-lpthread", "-ldl", "-lm")), ("libtcmalloc_minimal.a", ("-lpthread",)))


@needs_bpf
class OperatorsTest(FaultCase):
    def run_with(self, library, *args):
        """Run mleak with a copy of @library: where another recorder has return probes on the same
        file, the kernel puts them on this program's calls too."""
        if not os.path.exists(LIBRARIES + library):
            self.skipTest(library + " is not installed")
        copy = self.path(library)
        if not os.path.exists(copy):
            shutil.copy(LIBRARIES + library, copy)
        return self.mleak(*args, env=dict(os.environ, LD_PRELOAD=copy))

    def stacks(self):
        return parse_folded(self.report(self.path("x.mlk"), "--folded"))

    @staticmethod
    def bytes_of(stacks, name):
        return sum(stack.bytes for stack in stacks if name in stack.frames[-1])

    def check_seen(self, result, caught):
        self.assertEqual((result.status, result.out), (0, "caught %d\n" % caught), result.err)
        self.assertIn(" 0 lost\n", result.err)
        self.assertNotIn("operator new", result.err)
        stacks = self.stacks()
        self.assertEqual(self.bytes_of(stacks, "leak_by_malloc"), 23 * 53)
        self.assertEqual(self.bytes_of(stacks, "leak_by_new"), 23 * 47)
        self.assertLess(max(s.bytes for s in stacks), 1 << 20)  # none of what it threw for

    def test_it_is_seen_and_may_throw(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            for options in ((), ("--returns=ret",), ("--uprobes=perf",)):
                with self.subTest(library=library, options=options):
                    self.check_seen(self.run_with(library, "record", *options, "-o", self.path("x.mlk"),
                                                  "--", program, "throw"), 23)

    def test_child_that_is_not_recorded_may_throw(self):
        """It has the breakpoints of its parent, and no return probe where that has none."""
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            for options in ((), ("--returns=ret",), ("--uprobes=perf",)):
                with self.subTest(library=library, options=options):
                    result = self.run_with(library, "record", *options, "-o", self.path("x.mlk"), "--", program,
                                           "throw", "child")
                    self.assertEqual((result.status, result.out), (0, "caught 23\n"), result.err)

    def test_it_may_throw_many_times(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS * 5:
            with self.subTest(library=library):
                self.check_seen(self.run_with(library, "record", "-o", self.path("x.mlk"), "--", program,
                                              "throw"), 23)

    def test_left_alone_it_is_not_seen(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            with self.subTest(library=library):
                result = self.run_with(library, "record", "--no-operators", "-o", self.path("x.mlk"),
                                       "--", program, "throw")
                self.assertEqual((result.status, result.out), (0, "caught 23\n"), result.err)
                stacks = self.stacks()
                self.assertEqual(self.bytes_of(stacks, "leak_by_malloc"), 23 * 53)
                self.assertEqual(self.bytes_of(stacks, "leak_by_new"), 0)

    def test_with_a_return_probe_the_risk_is_named_once(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            with self.subTest(library=library):
                result = self.run_with(library, "record", "--returns=probe", "-o", self.path("x.mlk"), "--",
                                       program)
                self.assertEqual((result.status, result.out), (0, "caught 0\n"), result.err)
                lines = re.findall(r"operator new of '\S+' has a return probe: .* --no-operators", result.err)
                self.assertEqual(len(lines), 1, result.err)
                self.assertEqual(self.bytes_of(self.stacks(), "leak_by_new"), 23 * 47)

    def test_no_word_of_it_where_operators_call_malloc(self):
        result = self.mleak("record", "-o", self.path("x.mlk"), "--",
                            self.compile("throws", source=SOURCE, compiler="g++"), "throw")
        self.assertEqual((result.status, result.out), (0, "caught 23\n"), result.err)
        self.assertNotIn("operator new", result.err)
        self.assertEqual(sum(s.bytes for s in parse_folded(self.report(self.path("x.mlk"), "--folded"))
                             if "leak_by_new" in ";".join(s.frames)), 23 * 47)

    def test_dry_run_shows_what_is_left_alone(self):
        for options, shown in (((), True), (("--no-operators",), False)):
            result = self.run_with(THROWS[0], "record", "--dry-run", *options, "--", "true")
            self.assertEqual("_Znwm" in result.out, shown, result.out)
            self.assertEqual("_ZdlPv" in result.out, shown, result.out)

    def dry_run(self, program):
        result = self.mleak("record", "--dry-run", "--", program)
        self.assertEqual(result.status, 0, result.err)
        return result

    def test_those_of_libstdcxx_linked_in_call_malloc_and_may_throw(self):
        for flags in (("-static",), ("-static-pie",), ("-static", "-O0")):
            with self.subTest(flags=flags):
                program = self.compile("throws", *flags, source=SOURCE, compiler="g++")
                result = self.mleak("record", "-o", self.path("x.mlk"), "--", program, "throw")
                self.assertEqual((result.status, result.out), (0, "caught 23\n"), result.err)
                self.assertNotIn("operator new", result.err)
                stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
                self.assertEqual(sum(s.bytes for s in stacks if "leak_by_new" in ";".join(s.frames)),
                                 23 * 47)
                shown = self.dry_run(program).out
                self.assertNotRegex(shown, "_Zn|_Zd")
                self.assertIn("operator new and delete, which call these, are not probed", shown)

    def test_an_allocator_s_own_linked_in_are_probed(self):
        self.write("allocator.c", ALLOCATOR.encode())
        built = self.finish(self.spawn(["gcc", "-O2", "-fno-builtin", "-c", "allocator.c"]))
        self.assertEqual(built.status, 0, built.err)
        program = self.compile("bump", "-static", "-x", "none", self.path("allocator.o"), source=SOURCE, compiler="g++")
        self.check_probed(program)

    def test_known_allocators_linked_in_are_probed(self):
        found = [(LIBRARIES + name, libs) for name, libs in STATIC if os.path.exists(LIBRARIES + name)]
        if not found:
            self.skipTest("neither libjemalloc.a nor libtcmalloc_minimal.a is installed")
        for path, libraries in found:
            with self.subTest(library=path):
                self.check_probed(self.compile("linked", "-static", "-x", "none", "-Wl,--whole-archive", path,
                                               "-Wl,--no-whole-archive", *libraries, source=SOURCE,
                                               compiler="g++"), "throw")

    def check_probed(self, program, *args):
        shown = self.dry_run(program).out
        self.assertRegex(shown, r"(?m)^  _Znwm ")
        self.assertRegex(shown, r"(?m)^  _ZdlPv")
        self.assertNotIn("are not probed", shown)
        self.check_seen(self.mleak("record", "-o", self.path("x.mlk"), "--", program, *args),
                        23 if args else 0)
