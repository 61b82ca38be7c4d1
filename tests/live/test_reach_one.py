"""A single block that is lost is told in the singular."""

import subprocess

from mleaktest import LONG, Case, read_line

PROGRAM = b"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
	void *volatile block = malloc(4013);
	memset(block, 1, 4013);
	block = NULL;
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"""


class ReachOneTest(Case):
    def test_a_block(self):
        self.write("one.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-o", self.path("one"), self.path("one.c")], check=True, timeout=LONG)
        process = self.spawn([self.path("one")], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        result = self.mleak("reach", "-o", "x.mlk", str(process.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.out, r"(?m)^  of blocks of glibc.* from before the recording, 1 block is lost, 4,024 bytes:$")
