"""Programs that run each other so fast that a look at one may meet the next; and those without malloc."""

import re

from mleaktest import Case, needs_bpf, number, parse_totals

CHAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char left[20];
	void *volatile block = malloc(101);
	(void)block;
	snprintf(left, sizeof(left), "%d", atoi(argv[1]) - 1);
	if (atoi(left) >= 0)
		execl("/proc/self/exe", argv[0], left, NULL);
	return 0;
}
"""

# Without a C library: it sleeps for 50 ms, and ends.
NO_MALLOC = """
.globl _start
_start:
	mov $35, %eax
	lea time(%rip), %rdi
	xor %esi, %esi
	syscall
	mov $60, %eax
	xor %edi, %edi
	syscall
.data
time:	.quad 0, 50000000
"""


@needs_bpf
class ExecChainTest(Case):
    def build(self, name, source, *flags):
        self.write(name, source.encode())
        program = self.path(name.split(".")[0])
        built = self.finish(self.spawn(["gcc", "-O1", *flags, "-o", program, name]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def test_a_program_that_has_gone_on_is_no_reason_to_complain(self):
        program = self.build("chain.c", CHAIN)
        for options in [], ["--follow"]:
            result = self.mleak("record", *options, "-o", self.path("x.mlk"), "--", program, "200")
            self.assertEqual(result.status, 0, result.err)
            self.assertNotIn("defines malloc", result.err)
            self.assertNotIn("warning", result.err)
            self.assertEqual(len(result.err.splitlines()), 3, result.err)
            self.assertEqual(parse_totals(self.report(self.path("x.mlk"), "--bytes")).allocations, (201, 201 * 101))

    def test_why_a_program_is_not_recorded_is_said_once_of_it(self):
        program = self.build("nothing.s", NO_MALLOC, "-nostdlib", "-static")
        script = "for i in 1 2 3 4 5 6 7 8; do %s; done; true" % program
        result = self.mleak("record", "--follow", "-o", self.path("x.mlk"), "--", "sh", "-c", script)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.err.count("is statically linked"), 1)
        lost = re.search(r"(\d+) programs or processes that were not recorded", result.err)
        self.assertEqual(number(lost[1]), 8)
