"""The preloaded library waits for a recorder that gets no processor, rather than to lose anything."""

import os
import re
import signal
import subprocess
import sys
import time

from mleaktest import MLEAK_FAST, command_of, end_process, hold, parse_totals, read_line, state_of, wait_until
from test_preload import PreloadCase

# Waits for a byte.  Then what it is told: COUNT allocations and frees in one thread, or in COUNT detached
# threads of which at most 100 live at once; a plugin opened.  At the end it keeps 23 blocks of 47 bytes.
BUSY = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int live;
static void *volatile kept;
__attribute__((noinline)) static void leak_here(void) { kept = malloc(47); }
static void pairs(long n) { for (long i = 0; i < n; i++) free(malloc(1 + i % 300)); }
static void *run(void *arg)
{
	pairs(3);
	__atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
	return arg;
}
static void storm(long n)
{
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, 65536);
	while (n--) {
		while (__atomic_load_n(&live, __ATOMIC_SEQ_CST) >= 100)
			usleep(100);
		__atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
		while (pthread_create(&t, &a, run, NULL))
			usleep(1000);
	}
	while (__atomic_load_n(&live, __ATOMIC_SEQ_CST))
		usleep(100);
}
int main(int argc, char **argv)
{
	char byte;
	puts("on");
	fflush(stdout);
	read(0, &byte, 1);
	if (!strcmp(argv[1], "pairs"))
		pairs(atol(argv[2]));
	else if (!strcmp(argv[1], "storm"))
		storm(atol(argv[2]));
	else if (!dlopen(argv[2], RTLD_NOW))
		return 9;
	for (int i = 0; i < 23; i++)
		leak_here();
	return 0;
}
"""

SPIN = "import os\nwhile os.getppid() == %d: pass\n"


class WaitsTest(PreloadCase):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        self.busy = self.compile("busy", BUSY, "-w", "-ldl")

    def start(self, *args, options=()):
        recorder = self.start_mleak("record", "--backend", "preload", *options, "-o", "x.mlk", "--", self.busy,
                                    *args, stdin=subprocess.PIPE, **self.as_user)
        self.assertEqual(read_line(recorder), "on")
        return recorder

    def check(self, result, pairs):
        """Nothing is lost; returns the totals."""
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("lost: ", result.err)
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertEqual(totals.lost, 0)
        self.assertGreaterEqual(totals.allocations.blocks, pairs + 23)
        self.assertRegex(self.report(self.path("x.mlk"), "--format=folded"), r"leak_here %d\n" % (23 * 47))
        return totals

    def test_a_recorder_that_stands_for_seconds_loses_nothing(self):
        plugin = os.path.join(os.path.dirname(self.sample("dlopen")), "plugin.so")
        for args, pairs in ((("pairs", "400000"), 400000), (("storm", "2000"), 6000), (("open", plugin), 0)):
            with self.subTest(args[0]):
                recorder = self.start(*args, options=["--ring-size", "64K"])
                hold(recorder)
                recorder.stdin.write(b"x")
                time.sleep(3)  # much longer than the second after which it once gave up
                recorder.send_signal(signal.SIGCONT)
                self.check(self.finish(recorder), pairs)

    def test_beside_eight_busy_loops_nothing_is_lost(self):
        for _ in range(8):
            spinner = subprocess.Popen([sys.executable, "-c", SPIN % os.getpid()])
            self.addCleanup(end_process, spinner)
        for args, pairs in ((("pairs", "300000"), 300000), (("storm", "5000"), 15000)):
            with self.subTest(args[0]):
                recorder = self.start(*args)
                recorder.stdin.write(b"x")
                self.check(self.finish(recorder), pairs)

    def test_a_time_that_was_asked_for_is_kept(self):
        recorder = self.start("storm", "1500", options=["--on-full", "block=200ms"])
        hold(recorder)
        recorder.stdin.write(b"x")
        command = command_of(recorder.pid)
        wait_until(lambda: state_of(command) in "ZX", "the command still waits")
        recorder.send_signal(signal.SIGCONT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        seen, lost = (re.search(p, result.err) for p in (r": (\d+) allocations", r"lost: (\d+) allocations"))
        self.assertGreaterEqual(int(seen.group(1)) + int(lost.group(1)), 4500 + 23)


del PreloadCase
