"""The rates of `mleak top`, above all of its first table: bytes are divided by the time in which they were seen.
Programs that leak by the clock, a megabyte a second, are the truth."""

import os

from faulttest import FaultCase
from mleaktest import needs_bpf
from toptest import parse_tables

RATE = 1000000

# "steady": 1,000 bytes each millisecond, and what a late one has missed; "burst": a megabyte at once, then nothing.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
__attribute__((noipa)) void leak(void) { void *p = malloc(1000); __asm__ volatile("" :: "r"(p) : "memory"); }
int main(int argc, char **argv)
{
	double start = now();
	static char line[9] = "ready\n";
	long given = 0;
	if (argc != 3)
		return 1;
	if (write(2, line, 6) != 6)
		return 1;
	if (!strcmp(argv[1], "burst"))
		for (; given < 1000; given++)
			leak();
	for (; now() < start + atoi(argv[2]); usleep(1000))
		while (!strcmp(argv[1], "steady") && (double)given < (now() - start) * 1000) {
			leak();
			given++;
		}
	return 0;
}
"""


class TopRatesTest(FaultCase):
    backend = "preload"

    def setUp(self):
        super().setUp()
        self.compile("program", source=PROGRAM)

    def rates(self, *args):
        """What the function leak grows by, in each table that has it."""
        result = self.mleak("top", *args, stdin=-1)
        self.assertNotIn("cannot", result.err)
        return [row.rate for table in parse_tables(result.out) for row in table.rows if row.functions[0] == "leak"]

    def of_command(self, kind, interval, nr):
        return self.rates("--backend", self.backend, interval, str(nr), "--", self.path("program"), kind, "4")

    def test_the_first_table_has_the_rate_of_the_others(self):
        rates = self.of_command("steady", "1s", 3)
        self.assertEqual(len(rates), 3)
        # it has begun a little later than its recording
        self.assertTrue(0.75 * RATE < rates[0] < 1.1 * RATE, rates)
        for rate in rates[1:]:
            self.assertTrue(0.9 * RATE < rate < 1.1 * RATE, rates)

    def test_what_came_at_once_is_no_rate_of_a_moment(self):
        first, *_ = self.of_command("burst", "2s", 1)
        self.assertTrue(RATE / 2.5 < first < RATE / 1.2, first)


@needs_bpf
class TopRatesBpfTest(TopRatesTest):
    backend = "bpf"

    def start(self):
        program = self.spawn([self.path("program"), "steady", "30"])
        self.wait_for_words(program, "ready")
        return program

    def test_the_time_in_which_it_attaches_does_not_count(self):
        rates = self.rates("-p", str(self.start().pid), "1s", "2")
        self.assertEqual(len(rates), 2)
        for rate in rates:
            self.assertTrue(0.9 * RATE < rate < 1.1 * RATE, rates)

    def test_nor_in_a_finished_trace(self):
        """On a busy machine the program may stand still for a good part of 100 ms: not each time."""
        program = self.start()
        for _ in range(8):
            self.mleak("record", "-d", "1", "-o", "x.mlk", "-p", str(program.pid))
            rates = self.rates("x.mlk", "100ms", "3")
            if len(rates) == 3 and all(0.7 * RATE < rate < 1.3 * RATE for rate in rates):
                return
            os.remove(self.path("x.mlk"))
        self.fail(rates)
