"""A program with a sanitizer tells of its leaks with its own stacks, also while it is recorded."""

import glob
import re
import subprocess

from mleaktest import LONG, Case, needs_bpf, parse_totals
from test_preload import PreloadCase

PROGRAM = b"""
#include <stdlib.h>
static void *volatile kept;
const char *__asan_default_options(void) { return SAID; }
const char *__lsan_default_options(void) { return SAID; }
__attribute__((noipa)) static void leak_here(void)
{
	for (int i = 0; i < 23; i++)
		kept = malloc(47);
	kept = NULL;
}
__attribute__((noipa)) static void caller(void) { leak_here(); __asm__ volatile(""); }
int main(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(31));
	caller();
	return 0;
}
"""


@needs_bpf
class SanitizedTest(Case):
    def check(self, kind):
        subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-builtin", "-fsanitize=" + kind,
                        '-DSAID="exitcode=23:log_path=%s"' % self.path("said"), "-o", self.path("program"),
                        self.write("program.c", PROGRAM)], check=True, timeout=LONG)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "--", self.path("program"))
        self.assertEqual(result.status, 23, result.err)
        said, = glob.glob(self.path("said.*"))
        with open(said) as file:
            text = file.read()
        frames = re.findall(r"^    #\d+ \S+ in (\w+)", text, re.M)
        self.assertEqual(frames[1:4], ["leak_here", "caller", "main"], text)
        self.assertEqual(parse_totals(self.report(trace, "--function", "^leak_here$")).lost, 0)
        stacks = self.report(trace, "--format=folded", "--cost=blocks", "--function", "^leak_here$")
        self.assertEqual([line.rsplit(" ", 1)[1] for line in stacks.splitlines()], ["23"])

    def test_address(self):
        self.check("address")

    def test_leak(self):
        self.check("leak")


class SanitizedPreloadedTest(PreloadCase):
    def test_thread(self):
        """ThreadSanitizer's functions cannot be called before it has begun, nor its malloc by others."""
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-fsanitize=thread", '-DSAID=""', "-o",
                        self.path("program"), self.write("program.c", PROGRAM)], check=True, timeout=LONG)
        if subprocess.run([self.path("program")], timeout=LONG).returncode:
            self.skipTest("programs with ThreadSanitizer do not run here")
        trace, _ = self.record(self.path("program"))
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        stacks = self.report(trace, "--format=folded", "--cost=blocks", "--function", "^leak_here$")
        self.assertEqual([line.rsplit(" ", 1)[1] for line in stacks.splitlines()], ["23"])
