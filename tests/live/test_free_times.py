"""A block's end has its own time in the trace, not that of the event before it: the target's clock
tells when it was."""

import json
import re

from backends import both_backends
from faulttest import FaultCase
from mleaktest import parse_totals

BLOCKS, SIZE = 23, 300
NEAR_NS = 1000000

# Holds one block at a time, and says before and after each end of one what time it is.
SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { BLOCKS = 23, SIZE = 300 };
static uint64_t times[BLOCKS][3];
static void *blocks[BLOCKS + 1];
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void wait(void)
{
	const struct timespec t = {.tv_nsec = 20000000};
	nanosleep(&t, NULL);
}
static void *idle(void *arg)
{
	for (;;)
		wait();
	return arg;
}
__attribute__((noinline)) static void *hold(void) { return malloc(SIZE); }
int main(int argc, char **argv)
{
	int gaps = argc > 1 && argv[1][0] == 'g', moves = argc > 1 && argv[1][0] == 'm';
	pthread_t other;
	if (argc > 1 && argv[1][0] == 't')
		pthread_create(&other, NULL, idle, NULL);
	blocks[0] = hold();
	times[0][0] = now();
	for (int i = 0; i < BLOCKS; i++) {
		wait();
		times[i][1] = now();
		if (moves)
			blocks[i + 1] = realloc(blocks[i], SIZE);
		else
			free(blocks[i]);
		times[i][2] = now();
		if (gaps)
			wait();
		if (!moves)
			blocks[i + 1] = hold();
		if (i + 1 < BLOCKS)
			times[i + 1][0] = now();
	}
	for (int i = 0; i < BLOCKS; i++)
		printf("%llu %llu %llu\n", (unsigned long long)times[i][0],
		       (unsigned long long)times[i][1], (unsigned long long)times[i][2]);
	return 0;
}
"""


@both_backends
class FreeTimeTest(FaultCase):
    def record_it(self, *args):
        """[(given out, just before its end, just after it)] of each block, by the target's clock."""
        program = self.compile("holds", "-fno-builtin", "-pthread", source=SOURCE)
        trace, out = self.record(program, *args)
        return trace, [tuple(map(int, line.split())) for line in out.splitlines()]

    def ends(self, trace):
        """When the blocks of SIZE bytes ended, by the trace."""
        addresses, ends = set(), []
        for line in self.report(trace, "--dump").splitlines():
            found = re.match(r"^  (ALLOC|FREE|RELEASE) flags \S+, tgid \d+, tid \d+, time (\d+), "
                             r"(?:addr|at) 0x([0-9a-f]+)(?:, size (\d+))?", line)
            if not found:
                continue
            kind, time, address, size = found.groups()
            if kind == "ALLOC":
                (addresses.add if size == str(SIZE) else addresses.discard)(address)
            elif address in addresses:
                addresses.discard(address)
                ends.append(int(time))
        return ends

    def check(self, *args):
        trace, truths = self.record_it(*args)
        ends = self.ends(trace)
        self.assertEqual((len(truths), len(ends)), (BLOCKS, BLOCKS))
        for (_, before, after), end in zip(truths, ends):
            self.assertGreater(end, before - NEAR_NS)
            self.assertLess(end, after + NEAR_NS)
        return trace, truths

    def test_when_the_next_block_comes_at_once(self):
        trace, truths = self.check()
        start = re.search(r"^header: .* monotonic (\d+)", self.report(trace, "--dump"), re.M)[1]
        for given_out, before, _ in truths[::4]:
            at = (given_out + before) // 2 - int(start)
            totals = parse_totals(self.report(trace, "--at", "%.6f" % (at / 1e9)))
            self.assertEqual(totals.outstanding.bytes, SIZE)
        held = sorted(before - given_out for given_out, before, _ in truths)
        stacks = json.loads(self.report(trace, "--growth", "--format=json"))["stacks"]
        found = [s["median_lifetime_ns"] for s in stacks if s["allocated"]["bytes"] == SIZE * BLOCKS]
        self.assertEqual(len(found), 1)
        self.assertGreater(found[0], held[0] - NEAR_NS)  # it is rounded up to a power of two
        self.assertLess(found[0], 2 * (held[-1] + NEAR_NS))

    def test_when_nothing_comes_for_some_time(self):
        self.check("gaps")

    def test_beside_another_thread(self):
        self.check("thread")

    def test_of_realloc(self):
        self.check("moves")
