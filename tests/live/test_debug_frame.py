"""Programs without .eh_frame, whose tables were moved to their debug file with all else."""

import os
import subprocess

from backends import both_backends
from mleaktest import Case, parse_folded, parse_totals

SOURCE = b"""#include <stdlib.h>
#include <string.h>
#define FRAME __attribute__((noinline, noipa))
void *volatile kept;
FRAME void leaf(int n) { kept = malloc(n); __asm__ volatile(""); }
FRAME void mid(int n)
{
	char room[n];
	memset(room, n, n);
	leaf(n);
	__asm__ volatile("" : : "r"(room) : "memory");
}
FRAME void outer(int n) { mid(n); mid(n + 1); __asm__ volatile(""); }
int main(int argc, char **argv) { outer(argc + 300); return !argv; }
"""


@both_backends
class DebugFrameTest(Case):
    def test_stacks_are_whole_by_the_debug_frame_of_a_separate_debug_file(self):
        self.write("program.c", SOURCE)
        for command in (["gcc", "-O2", "-g", "-fno-asynchronous-unwind-tables", "-fomit-frame-pointer",
                         "-o", "program", "program.c"],
                        ["objcopy", "--only-keep-debug", "program", "program.debug"],
                        ["strip", "program"],
                        ["objcopy", "--add-gnu-debuglink=program.debug", "program"]):
            subprocess.run(command, cwd=self.dir, check=True)
        trace, _ = self.record(self.path("program"))
        os.remove(self.path("program.debug"))
        os.remove(self.path("program"))
        self.assert_whole(parse_totals(self.report(trace)))
        stacks = parse_folded(self.report(trace, "--folded"))
        self.assertEqual([(s.frames[-4:], s.bytes) for s in stacks],
                         [(["main", "outer", "mid", "leaf"], 603)])
