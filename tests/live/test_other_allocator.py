"""A program with an allocator under another name, beside the C library's, as Rust's jemallocator."""

import subprocess

from injecttest import has_library
from mleaktest import LONG, Case, needs_bpf, parse_folded, parse_totals

# Its own blocks: 23 of 47 bytes. The C library's: 3 of 61.
PROGRAM = b"""
#include <stdlib.h>
static char room[65536], *at = room;
static void *volatile kept;
__attribute__((noinline, noipa)) void *_rjem_malloc(size_t size) { at += (size + 15) & ~15ul; return at - size; }
__attribute__((noinline, noipa)) void *_rjem_mallocx(size_t size, int flags) { return (void)flags, _rjem_malloc(size); }
__attribute__((noinline, noipa)) void _rjem_free(void *p) { kept = p; }
__attribute__((noinline, noipa)) void _rjem_dallocx(void *p, int flags) { kept = p, (void)flags; }
__attribute__((noinline, noipa)) void _rjem_sdallocx(void *p, size_t size, int flags) { kept = p, (void)size, (void)flags; }
int main(void)
{
	for (int i = 0; i < 23; i++) {
		kept = _rjem_malloc(47);
		_rjem_free(_rjem_malloc(100));
		_rjem_sdallocx(_rjem_malloc(110), 110, 0);
		_rjem_dallocx(_rjem_mallocx(120, 0), 0);
	}
	for (int i = 0; i < 3; i++)
		kept = malloc(61);
	return 0;
}
"""

JEMALLOC = b"""
#include <stdlib.h>
void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
void dallocx(void *, int);
void sdallocx(void *, size_t, int);
static void *volatile kept;
int main(void)
{
	for (int i = 0; i < 23; i++) {
		kept = mallocx(1061, 0);
		sdallocx(malloc(1100), 1100, 0);
		dallocx(rallocx(mallocx(1200, 0), 1300, 0), 0);
	}
	return 0;
}
"""


class OtherAllocatorCase(Case):
    backend = "bpf"

    def build(self, source, *flags):
        self.write("program.c", source)
        subprocess.run(["gcc", "-O1", "-o", self.path("program"), self.path("program.c"), *flags],
                       check=True, timeout=LONG)

    def recorded(self, *options):
        """What is outstanding, and what the recorder said."""
        self.build(PROGRAM)
        result = self.mleak("record", "--backend", self.backend, *options, "-o", "x.mlk", "--",
                            self.path("program"))
        self.assertEqual(result.status, 0, result.err)
        return parse_totals(self.report(self.path("x.mlk"))).outstanding, result.err


class PreloadTest(OtherAllocatorCase):
    backend = "preload"

    def test_it_is_told_that_its_blocks_are_not_recorded(self):
        outstanding, said = self.recorded()
        self.assertEqual(outstanding, (3, 3 * 61))
        self.assertIn("has another allocator, _rjem_malloc, whose blocks are not recorded; "
                      "by eBPF, as root, --prefix _rjem_ records them", said)

    def told(self, source, *command, library="libjemalloc.so.2"):
        """What is said of a program with this allocator, and what a check for leaks makes of its trace."""
        if not has_library(library):
            self.skipTest(library + " is not installed")
        self.build(source, "-Wl,--no-as-needed", "-l:" + library)
        result = self.mleak("record", "--backend", "preload", "-o", "x.mlk", "--", *command, self.path("program"))
        self.assertEqual(result.status, 0, result.err)
        return result.err, self.mleak("report", "--fail-on-leak=1G", "x.mlk").status

    def test_calls_of_jemallocs_own_functions_are_told(self):
        for command in ((), ("sh", "-c", 'exec "$0"')):
            said, status = self.told(JEMALLOC, *command)
            self.assertIn("1 program calls functions that only one allocator has, such as mallocx", said)
            self.assertEqual(status, 2)

    def test_a_program_that_an_allocator_only_serves_is_recorded(self):
        for library in "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2":
            with self.subTest(library):
                said, status = self.told(b"#include <stdlib.h>\nvoid *volatile kept;\n"
                                         b"int main(void) { kept = malloc(47); return 0; }\n", library=library)
                self.assertNotIn("another allocator", said)
                self.assertNotIn("only one allocator has", said)
                self.assertEqual(status, 0)


@needs_bpf
class OtherAllocatorTest(OtherAllocatorCase):
    def test_it_is_told_that_its_blocks_are_not_recorded(self):
        outstanding, said = self.recorded()
        self.assertEqual(outstanding, (3, 3 * 61))
        self.assertIn("has another allocator, _rjem_malloc, whose blocks are not recorded; "
                      "--prefix _rjem_ records them", said)

    def test_what_is_told_records_them(self):
        outstanding, said = self.recorded("--prefix", "_rjem_")
        self.assertEqual(outstanding, (26, 23 * 47 + 3 * 61))
        self.assertNotIn("another allocator", said)

    def test_blocks_of_jemallocs_own_functions(self):
        if not has_library("libjemalloc.so.2"):
            self.skipTest("libjemalloc is not installed")
        self.build(JEMALLOC, "-l:libjemalloc.so.2")
        self.mleak("record", "--backend", "bpf", "-z", "1000", "-o", "x.mlk", "--", self.path("program"))
        stacks = [stack for stack in parse_folded(self.report(self.path("x.mlk"), "--format=folded"))
                  if "main" in stack.frames]
        self.assertEqual(sum(stack.bytes for stack in stacks), 23 * 1061)
