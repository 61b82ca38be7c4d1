"""More threads than the preloaded library has places for, which only count what they allocate.  The truth
is what the target does."""

import re
import time

from mleaktest import MLEAK_FAST, read_line, wait_until
from test_preload_threads import CountsCase
from test_thread_accounts import NONE, amount

MANY = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned long blocks, threads, together, asking;
static pthread_barrier_t all;
/* Wait for a line. */
static void ask(unsigned long i)
{
	printf("%lu\n", i + 1);
	fflush(stdout);
	while (getchar() > '\n')
		;
}
static void *run(void *arg)
{
	void **mine = malloc(blocks * sizeof(void *));
	for (unsigned long i = 0; i < blocks; i++)
		mine[i] = malloc(100 + i % 8);
	if (together)
		pthread_barrier_wait(&all);
	for (unsigned long i = 0; i < blocks; i++)
		free(mine[i]);
	free(mine);
	return arg;
}
int main(int argc, char **argv)
{
	threads = atol(argv[1]), blocks = atol(argv[2]);
	together = argc > 3 && *argv[3] == 't', asking = argc > 3 && *argv[3] == 'a';
	pthread_t *t = calloc(threads, sizeof(*t));
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&all, NULL, threads);
	for (unsigned long i = 0; i < threads; i++) {
		if (pthread_create(&t[i], &small, run, NULL))
			return 1;
		if (!together)
			pthread_join(t[i], NULL);
		if (asking && i % 2000 == 1999)
			ask(i);
	}
	for (unsigned long i = 0; together && i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}
"""


class ManyTest(CountsCase):
    program = MLEAK_FAST
    FILTER = ("-z", "100", "-Z", "107", "--trigger", "1G")

    def run_many(self, *args):
        return self.record(self.compile("many", MANY), *args, options=self.FILTER)[0]

    def turns(self, process):
        """How often its first thread ran."""
        with open("/proc/%d/schedstat" % process.pid) as schedstat:
            return int(schedstat.read().split()[2])

    def test_eight_threads_fill_the_table(self):
        """What finds no place is counted as that, and all else is as the threads did it."""
        trace = self.run_many("8", "150000", "together")
        unkept, counted = self.unkept(trace), self.sum_of(trace, "counted")
        self.assertGreater(unkept.nr, 8 * 150000 - (1 << 20) - 1)
        self.assertLess(unkept.nr, 8 * 150000 - (1 << 20) * 4 // 5)
        self.assertEqual(counted.blocks + unkept.nr, 8 * 150000)
        self.assertEqual(counted.bytes + unkept.bytes, 8 * 150000 // 8 * sum(range(100, 108)))
        self.assertEqual(self.sum_of(trace, "freed_by_itself"), counted)
        self.assertEqual(self.skipped(self.dump(trace))["trigger"].nr, 8 * 150000)

    def test_more_threads_at_a_time_than_there_are_rings(self):
        trace = self.run_many("600", "16", "together")
        rows = [g for g in self.groups(trace)["groups"]]
        self.assertEqual([amount(g["allocated"]) for g in rows], [(16, 2 * 828)] * 600)
        self.assertEqual({amount(g["outstanding"]) for g in rows}, {NONE})
        self.assertEqual(self.unkept(trace).nr, 0)

    def test_why_threads_without_a_ring_are_lost(self):
        """The first block of each, the list of its others, comes before any has ended."""
        for threads, said in (600, True), (400, False):
            with self.subTest(threads):
                trace = self.path("x.mlk")
                result = self.finish(self.spawn([self.program, "record", "--backend", "preload", "-o", trace,
                                                 "--", self.compile("many", MANY), str(threads), "2", "together"]))
                self.assertEqual(result.status, 0, result.err)
                lost = re.search(r"lost: (\d+) allocations?", result.err)
                self.assertEqual("all 512 buffers for threads were taken" in result.err, said, result.err)
                self.assertEqual(bool(lost), said, result.err)
                if said:
                    self.assertGreaterEqual(int(lost[1]), threads - 512)

    def test_more_threads_one_after_the_other_than_there_are_accounts(self):
        mleak, trace = self.launch(*self.FILTER, argv=(self.compile("many", MANY), "20000", "8", "ask"))
        for nr in range(2000, 20001, 2000):
            self.assertEqual(read_line(mleak), str(nr))
            # it reads the accounts when 1,024 more threads were there, but no more than five times a
            # second; and has had its turns
            begin, turns = time.monotonic(), self.turns(mleak)
            wait_until(lambda: time.monotonic() - begin > 0.4 and self.turns(mleak) > turns + 5,
                       "a recorder that runs")
            mleak.stdin.write(b"\n")
        self.assertEqual(self.finish(mleak).status, 0)
        self.assertEqual(self.sum_of(trace, "allocated").blocks + self.unkept(trace).nr, 160000)
        # the recorder took some out in time: there are 8,192
        self.assertGreater(self.sum_of(trace, "allocated").blocks, 8 * 8192)
        self.assertEqual(self.skipped(self.dump(trace))["trigger"], (160000, 20000 * 828))
