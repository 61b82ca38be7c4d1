"""An operator new of the allocator's own that throws cannot be probed; the option that leaves it
alone, and the line that names it."""

import os
import re

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
THROWS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")  # mimalloc's aborts by itself

SOURCE = r"""
#include <new>
#include <cstdio>
#include <cstdlib>
static void *volatile kept;
__attribute__((noinline)) static void leak_by_new() { kept = operator new(47); }
__attribute__((noinline)) static void leak_by_malloc() { kept = malloc(53); }
int main(int argc, char **)
{
	volatile size_t huge = (size_t)1 << 60;
	int caught = 0;
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


@needs_bpf
class OperatorsTest(FaultCase):
    def run_with(self, library, *args):
        if not os.path.exists(LIBRARIES + library):
            self.skipTest(library + " is not installed")
        return self.mleak(*args, env=dict(os.environ, LD_PRELOAD=LIBRARIES + library))

    def bytes_of(self, name):
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        return sum(stack.bytes for stack in stacks if name in stack.frames[-1])

    def test_left_alone_it_may_throw(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            with self.subTest(library=library):
                result = self.run_with(library, "record", "--no-operators", "-o", self.path("x.mlk"),
                                       "--", program, "throw")
                self.assertEqual((result.status, result.out), (0, "caught 23\n"), result.err)
                self.assertNotIn("operator new", result.err)
                self.assertEqual(self.bytes_of("leak_by_malloc"), 23 * 53)
                self.assertEqual(self.bytes_of("leak_by_new"), 0)

    def test_probed_it_is_seen_and_the_risk_is_named_once(self):
        program = self.compile("throws", source=SOURCE, compiler="g++")
        for library in THROWS:
            with self.subTest(library=library):
                result = self.run_with(library, "record", "-o", self.path("x.mlk"), "--", program)
                self.assertEqual((result.status, result.out), (0, "caught 0\n"), result.err)
                lines = re.findall(r"operator new of '\S+' is probed: .* --no-operators", result.err)
                self.assertEqual(len(lines), 1, result.err)
                self.assertEqual(self.bytes_of("leak_by_new"), 23 * 47)

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
