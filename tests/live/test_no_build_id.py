"""Names and lines of a program without build-id: from its file, as long as that is the same."""

import json
import os
import subprocess

from backends import both_backends
from mleaktest import LONG, Case

PROGRAM = """#include <stdlib.h>
static void *volatile kept;
static inline __attribute__((always_inline)) void inner(void) { kept = malloc(47); }
__attribute__((noipa)) static void leak_here(void) { inner(); __asm__ volatile(""); }
int main(void)
{
	for (int i = 0; i < 23; i++)
		leak_here();
	return 0;
}
"""


@both_backends
class NoBuildIdTest(Case):
    def build(self, source):
        subprocess.run(["gcc", "-O2", "-g", "-Wl,--build-id=none", "-o", self.path("program"),
                        self.write("program.c", source.encode())], check=True, timeout=LONG)

    def places(self, trace):
        """Functions and lines of the frames in the program, as far as main()."""
        report = json.loads(self.report(trace, "--format=json", "--inline", "--function", "^leak_here$"))
        frames = [report["frames"][number] for number in report["stacks"][0]["frames"]]
        return [(frame["function"], frame.get("line", 0)) for frame in frames][:3]

    def test_lines_are_there_until_the_file_is_another(self):
        self.build(PROGRAM)
        trace, _ = self.record(self.path("program"))
        self.assertEqual(self.places(trace), [("inner", 3), ("leak_here", 4), ("main", 8)])
        # it differs in lines alone
        self.build("\n" + PROGRAM)
        self.assertEqual(self.places(trace)[:2], [("leak_here", 0), ("main", 0)])

    def test_lines_of_a_file_that_was_touched_are_not_taken(self):
        self.build(PROGRAM)
        trace, _ = self.record(self.path("program"))
        os.utime(self.path("program"), (1000000000, 1000000000))
        self.assertEqual(self.places(trace)[0], ("leak_here", 0))
