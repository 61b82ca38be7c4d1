"""What the preloaded library counts of threads that have ended, more than there are accounts."""

import json
import re

from mleaktest import MLEAK_FAST
from test_preload_threads import CountsCase

ENDED = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[20000];
static void *one(void *arg) { return *(void **)arg = malloc(1000); }
static void *leak(void *arg) { return arg ? malloc(5000) : 0; }
int main(int argc, char **argv)
{
	long nr = atol(argv[1]), pause = atol(argv[2]);
	pthread_t t;
	for (long i = 0; i < nr; i++)
		if (pthread_create(&t, 0, one, &blocks[i]) || pthread_join(t, 0))
			return 1;
	for (long i = 0; i < nr; i++, pause ? usleep(pause) : 0)
		free(blocks[i]);
	for (int i = 0; !pause && i < 20; i++)
		if (pthread_create(&t, 0, leak, &t) || pthread_join(t, 0))
			return 1;
	return 0;
}
"""


class EndedTest(CountsCase):
    program = MLEAK_FAST

    def groups(self, trace, *args):
        """As elsewhere, but the report may warn of what was not added up."""
        result = self.mleak("report", "--format=json", "--by", "thread", trace)
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"\A(mleak: warning: .* that were not added up for --trigger.*\n)?\Z")
        return json.loads(result.out)

    def test_blocks_of_more_ended_threads_than_there_are_accounts(self):
        """Threads that begin meanwhile are recorded, and the frees are added up, or told."""
        program = self.compile("ended", ENDED)
        trace = self.record(program, "9000", "0", options=["-z", "1000", "--choose", "recorded"])[0]
        self.assertEqual(self.sizes(self.events(self.dump(trace))), {1000: 9000, 5000: 20})
        self.assertEqual(self.unkept(trace).nr, 0)
        trace = self.record(program, "12000", "300", options=["-z", "1000", "--trigger", "1G"])[0]
        freed, lost = self.sum_of(trace, "freed_by_others").blocks, re.search(
            r"(?m)^lost +(\d+) allocations and frees that were not added up", self.mleak("info", trace).out)
        self.assertGreater(freed, 0)  # how many depends on when the recorder takes some out
        self.assertEqual(freed + int(lost[1] if lost else 0) + self.unkept(trace).nr, 12000)
