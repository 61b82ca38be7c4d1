"""A trace of more processes than anybody reads lines of."""

import re
import subprocess

from backends import either_backend
from mleaktest import Case, number, parse_totals

NR = 110
# The n-th child leaks n times 1009 bytes.
SOURCE = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
int main(void)
{
	for (int i = 1; i <= %d; i++) {
		if (!fork()) {
			kept = malloc(1009 * i);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
""" % NR


@either_backend
class ManyProcessesTest(Case):
    def test_the_heaviest_processes_have_lines_and_the_others_one_together(self):
        source = self.write("family.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-o", self.path("family"), source], check=True)
        trace, _ = self.record(self.path("family"), options=("--follow",))
        text = self.report(trace, "--per-process")
        lines = re.findall(r"(?m)^  process \d+ family: .* with ([\d,]+) bytes outstanding; forked by", text)
        self.assertEqual([number(line) for line in lines],
                         [1009 * i for i in range(NR, NR - len(lines), -1)])
        self.assertEqual(len(lines), 100)
        rest = re.search(r"(?m)^  and 11 processes with less: .*, 10 blocks with ([\d,]+) bytes outstanding; "
                         r"'mleak info' lists them$", text)
        self.assertEqual(number(rest[1]), 1009 * sum(range(1, 11)))
        self.assertEqual(parse_totals(text).outstanding.bytes, 1009 * sum(range(1, NR + 1)))
        self.assertEqual(len(re.findall("(?m)^process ", self.mleak("info", trace).out)), NR + 1)
