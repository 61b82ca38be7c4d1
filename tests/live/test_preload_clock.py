"""Commands recorded by the preloaded library where the kernel's clocksource is not the time stamp counter.

The recorder believes in another clocksource by a file mounted over the kernel's, in a mount namespace of its
own: nothing of the machine is changed.
"""

import json
import os
import re
import subprocess

from mleaktest import MLEAK_FAST, ends_in, parse_answers, parse_folded, parse_totals
from test_preload import PreloadCase

SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
MOUNTED = 'mount --bind "$0" %s && exec "$@"' % SOURCE

# A clock that stands for 10 us: each thread's block is freed by the next one, which gets it at once.  At the end
# 23 blocks of 47 bytes are left; the others' sizes tell nothing.
PASSED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define THREADS 3
static void *boxes[THREADS];
int clock_gettime(clockid_t id, struct timespec *ts)
{
	long result = syscall(SYS_clock_gettime, id, ts);
	if (!result && id == CLOCK_MONOTONIC)
		ts->tv_nsec -= ts->tv_nsec % 10000;
	return (int)result;
}
__attribute__((noinline)) static void leak_here(void) { *(void *volatile *)&boxes[0] = malloc(47); }
static void *run(void *arg)
{
	long me = (long)arg;
	for (int i = 0; i < 30000; i++) {
		void *block;
		while (__atomic_load_n(&boxes[me], __ATOMIC_ACQUIRE))
			sched_yield();
		__atomic_store_n(&boxes[me], malloc(100 + i % 50), __ATOMIC_RELEASE);
		while (!(block = __atomic_exchange_n(&boxes[(me + 1) % THREADS], NULL, __ATOMIC_ACQ_REL)))
			sched_yield();
		free(block);
	}
	return NULL;
}
int main(void)
{
	pthread_t t[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 23; i++)
		leak_here();
	return 0;
}
"""

# Four children by turns keep 23 blocks of 47 bytes each, two by exec.
FAMILY = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile block;
__attribute__((noinline)) static void leak_here(void) { block = malloc(47); }
int main(int argc, char **argv)
{
	for (int i = 0; argc < 2 && i < 4; i++) {
		if (!fork()) {
			if (i % 2)
				execl(argv[0], argv[0], "leak", NULL);
			for (int n = 0; n < 23; n++)
				leak_here();
			return 0;
		}
		wait(NULL);
	}
	for (int n = 0; argc > 1 && n < 23; n++)
		leak_here();
	return 0;
}
"""

# Keeps as many blocks of 47 bytes as it is told, one each 5 ms, and says how many.
SLOW = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
__attribute__((noinline)) static void leak_here(void) { block = malloc(47); }
int main(int argc, char **argv)
{
	long most = atol(argv[1]);
	for (long n = 0; n < most; n++, usleep(5000))
		leak_here();
	printf("%ld\n", most);
	return 0;
}
"""


class OtherClock:
    """What records believes in the clocksource @source."""

    program = MLEAK_FAST
    source = "hpet\n"
    as_user = {}

    def setUp(self):
        super().setUp()
        result = subprocess.run(self.mounted(["cat", SOURCE]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode:
            self.skipTest("no file can be mounted over another here: " + result.stderr.decode().strip())
        self.assertEqual(result.stdout.decode(), self.source)

    def mounted(self, argv):
        file = self.write("clocksource", self.source.encode())
        own_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", "--mount", *own_root, "sh", "-c", MOUNTED, file, *argv]

    def spawn(self, argv, **options):
        if argv[1:2] == ["record"]:
            argv = self.mounted(argv)
        return super().spawn(argv, **options)

    def of_leak_here(self, trace):
        return sum(s.bytes for s in parse_folded(self.report(trace, "--format=folded"))
                   if "leak_here" in s.frames)


class ClockTest(OtherClock, PreloadCase):
    def test_samples_are_recorded_exactly_whatever_the_clocksource(self):
        for source in ("hpet", "acpi_pm", "kvm-clock", "xen", "hyperv_clocksource_tsc_page", "jiffies",
                       "", "tsc"):
            for name in ("single", "threads"):
                with self.subTest(source + " " + name):
                    self.source = source + "\n" if source else ""
                    trace, out = self.record(self.sample(name))
                    answers = parse_answers(out)
                    self.assertEqual(len(answers), 1)
                    stacks = parse_folded(self.report(trace, "--format=folded"))
                    self.assertEqual(sum(s.bytes for s in stacks if ends_in(s.frames, answers[0].path)),
                                     answers[0].bytes)
                    self.assert_whole(parse_totals(self.report(trace)))

    def test_a_free_comes_after_its_allocation_though_the_clock_stands(self):
        program = self.compile("passed", PASSED, "-rdynamic")
        trace, _ = self.record(program)
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        self.assertGreaterEqual(totals.allocations.blocks, 3 * 30000 + 23)
        self.assertEqual(self.of_leak_here(trace), 23 * 47)
        left = [s for s in parse_folded(self.report(trace, "--format=folded")) if "run" in s.frames]
        self.assertEqual(left, [])

    def test_times_only_grow_and_are_those_of_the_program(self):
        trace, out = self.record(self.compile("slow", SLOW), "40")
        self.assertEqual(out, "40\n")
        self.assertEqual(self.of_leak_here(trace), 40 * 47)
        events = [line.split() for line in self.mleak("script", trace).out.splitlines()]
        times = [float(words[0]) for words in events]
        self.assertEqual(times, sorted(times))
        kept = [float(words[0]) for words in events if words[4:5] == ["47"]]
        self.assertEqual(len(kept), 40)
        for before, after in zip(kept, kept[1:]):
            self.assertGreaterEqual(after - before, 0.005)

    def test_for_a_time(self):
        result = self.mleak("record", "--backend", "preload", "-d", "0.5", "-o", self.path("x.mlk"), "--",
                            self.compile("slow", SLOW), "400")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("0 lost", result.err)
        blocks = self.of_leak_here(self.path("x.mlk")) // 47
        self.assertTrue(0 < blocks < 400, blocks)

    def test_after_a_delay(self):
        trace, _ = self.record(self.compile("slow", SLOW), "400", options=["-D", "1s"])
        skipped = re.findall(r"^  SKIPPED size.* delay (\d+)", self.report(trace, "--dump"), re.M)[-1]
        blocks = self.of_leak_here(trace) // 47
        self.assertTrue(0 < blocks < 400, blocks)
        # Of what came before main, too, nothing was recorded.
        self.assertGreaterEqual(int(skipped) + blocks, 400)

    def test_children(self):
        trace, _ = self.record(self.compile("family", FAMILY), options=["--follow"])
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        self.assertEqual(self.of_leak_here(trace), 4 * 23 * 47)

    def test_overruns_are_found_where_they_were(self):
        trace, out = self.record(self.sample("overrun"), options=["--guard"])
        truth = re.findall(r"^overrun: found=(\S+) size=(\d+) .* len=(\d+) path=\S+;(\S+)$", out, re.M)
        self.assertEqual(len(truth), 10)
        found = json.loads(self.report(trace, "--format=json"))["overruns"]
        self.assertEqual(sorted((s["found"]["at"], str(s["size"]), str(s["length"]),
                                 s["block"]["frames"][0]["function"]) for s in found["first_sites"]),
                         sorted(truth))


del PreloadCase
