"""One in so many bytes, by code that is put into a process: each call is either recorded or counted as left out, once,
by what the program counted itself."""

import math
import re
import subprocess

from injecttest import InjectCase, State
from mleaktest import parse_totals, read_line

BYTES = 47
LARGE = 200003  # bytes, which musl and glibc map
CALLS = 200003
FEW = 1999

# Allocates and frees as often as a line says, a block of BYTES.  If it is OWN it has a malloc which calls libc's memalign.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef OWN
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
static volatile unsigned long calls, frees; /* no call is among the first bytes, which are changed */
__attribute__((noinline, noipa)) void *malloc(size_t bytes)
{
	calls++;
	void *block = __libc_memalign(64, bytes);
	__asm__ volatile("" : "+r"(block)); /* or it is a jump */
	return block;
}
__attribute__((noinline, noipa)) void free(void *block)
{
	frees++;
	__libc_free(block);
	__asm__ volatile("");
}
#endif
static void say(const char *word)
{
	if (write(1, word, strlen(word)) < 0)
		_exit(1);
}
int main(void)
{
	char line[32] = "";
	say("begun\n");
	while (read(0, line, sizeof(line)) > 0) {
		for (long left = atol(line); left > 0; left--) {
			void *volatile block = malloc(BYTES);
			free(block);
		}
		say("done\n");
	}
	return 0;
}
"""


class SamplesTest(InjectCase):
    def skipped(self):
        """What was left out, blocks and then bytes, by kind."""
        dump = self.mleak("report", "--dump", self.path("x.mlk")).out
        found = [re.findall(r"(?m)^  SKIPPED %s(.*)$" % what, dump)[-1] for what in ("(?!B)", "BYTES ")]
        return [{kind: int(nr) for kind, nr in re.findall(r"(\w+) (\d+)", line)} for line in found]

    def check(self, *flags, size=BYTES, calls=CALLS, compiler="gcc"):
        program = self.build("program", PROGRAM, "-DBYTES=%d" % size, *flags, compiler=compiler)
        process = self.spawn([program], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "begun")
        before = State(process.pid)
        every = size * calls // 900
        mleak = self.attach(process.pid, "-s", "%dB" % every)
        process.stdin.write(b"%d\n" % calls)
        self.assertEqual(read_line(process), "done")
        self.detach(mleak)
        self.assert_unchanged(process.pid, before)
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)
        blocks, bytes_ = self.skipped()
        dump = self.mleak("report", "--dump", self.path("x.mlk")).out
        recorded = re.findall(r"(?m)^  ALLOC .*size (\d+), func (\w+)", dump)
        self.assertEqual(set(recorded), {(str(size), "malloc")})
        # a block's chance is 1 - exp(-size / every)
        sampled = calls * (1 - math.exp(-size / every))
        self.assertAlmostEqual(len(recorded) / sampled, 1, delta=5 / sampled ** 0.5)
        self.assertEqual(blocks["sample"] + len(recorded), calls)
        self.assertEqual(bytes_["sample"], blocks["sample"] * size)
        self.assertEqual(blocks["free"] + len(recorded), calls)
        self.assertEqual(len(re.findall(r"(?m)^  UNMAP ", dump)), 0)
        self.assertEqual(parse_totals(self.report(self.path("x.mlk"))).outstanding.blocks, 0)

    def test_each_call_is_counted_once(self):
        self.check()

    def test_what_an_allocator_maps_is_its_own(self):
        for compiler, flags in (("gcc", ()), ("gcc", ("-static",)), ("musl-gcc", ()), ("musl-gcc", ("-static",))):
            with self.subTest(compiler=compiler, flags=flags):
                self.check(*flags, size=LARGE, calls=FEW, compiler=compiler)

    def test_an_allocator_that_calls_another(self):
        self.check("-DOWN")

    def test_it_comes_and_goes_beside_16_threads(self):
        target = self.start_target()
        target.pause()
        state = State(target.pid)
        target.go()
        for _ in range(10):
            self.record_for(target.pid, "50ms", "-s", "1K")
            target.check()
        target.pause()
        self.assert_unchanged(target.pid, state)
        target.end()
