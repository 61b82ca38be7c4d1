"""Rings of the preloaded library: full, stopped, killed on either side, and in the right order."""

import os
import re
import signal
import subprocess
import time

from mleaktest import MLEAK_FAST, command_of, hold, parse_folded, parse_totals, read_line, state_of, wait_until
from test_preload import PreloadCase
from test_preload_life import HEAD

BLOCK_SECONDS = 60  # without --on-full, so long the library waits for room

COUNTED = HEAD + r"""
int main(int argc, char **argv)
{
	unsigned long n = 0, max = strtoul(argv[1], NULL, 10);
	char byte;
	if (argc > 2 && (write(1, "on\n", 3) != 3 || read(0, &byte, 1) != 1))
		return 9;
	for (; n < max; n++)
		free(malloc(16 + n % 512));
	return 0;
}
"""

# An allocator whose free hands the block to another thread's malloc before it returns.
RELAY = r"""
#include <stddef.h>
#include <string.h>
static char room[1 << 22];
static size_t used;
static void *handed;
void *armed;
int taken;
void *malloc(size_t n)
{
	void *p;
	if (n != 157)
		return room + __atomic_fetch_add(&used, (n + 16) & ~15ul, __ATOMIC_SEQ_CST);
	while (!(p = __atomic_exchange_n(&handed, NULL, __ATOMIC_SEQ_CST)))
		;
	return p;
}
void free(void *p)
{
	if (!p || p != armed)
		return;
	__atomic_store_n(&handed, p, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&taken, __ATOMIC_SEQ_CST))
		;
}
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
"""

RELAYED = HEAD + r"""
extern void *armed;
extern int taken;
static void *run(void *arg)
{
	leak(1, 157);
	__atomic_store_n(&taken, 1, __ATOMIC_SEQ_CST);
	return arg;
}
int main(void)
{
	pthread_t t;
	armed = malloc(100);
	pthread_create(&t, NULL, run, NULL);
	free(armed);
	pthread_join(t, NULL);
	return 0;
}
"""


class RingTest(PreloadCase):
    program = MLEAK_FAST

    def test_seen_and_dropped_make_the_truth(self):
        program = self.compile("counted", COUNTED)
        trace = self.path("x.mlk")
        result = self.mleak("record", "--backend", "preload", "-o", trace, "--ring-size", "64K",
                            "--on-full", "drop", "--", program, "400000", **self.as_user)
        self.assertEqual(result.status, 0)
        seen = re.search(r": (\d+) allocations?, (\d+) frees?, (\d+) lost", result.err).groups()
        lost = dict((kind, int(n)) for n, kind in
                    re.findall(r"lost: (\d+) (allocations|frees)$", result.err, re.M))
        self.assertEqual(int(seen[0]) + lost.get("allocations", 0), 400000)
        self.assertEqual(int(seen[1]) + lost.get("frees", 0), 400000)
        self.assertGreater(lost["allocations"], 0, "the ring was never full: this tested nothing")

    def test_a_free_comes_before_the_same_address_is_given_to_another_thread(self):
        self.compile("librelay.so", RELAY, "-shared", "-fPIC")
        program = self.compile("relayed", RELAYED, "-L.", "-lrelay", "-Wl,-rpath," + self.dir)
        trace, _ = self.record(program)
        text = self.report(trace)
        self.assertNotIn("unknown frees", text)
        self.assertNotIn("implied frees", text)
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual([s.bytes for s in stacks if s.frames[-1] == "leak"], [157])

    def test_nothing_is_lost_when_blocked(self):
        program = self.compile("counted", COUNTED)
        trace, _ = self.record(program, "400000", options=["--ring-size", "64K"])
        totals = parse_totals(self.report(trace))
        self.assertEqual((totals.allocations.blocks, totals.frees.blocks, totals.lost),
                         (400000, 400000, 0))

    def start_counting(self, program, nr, *options):
        """The recorder of @program, which begins once it is given a byte; and the program's pid."""
        recorder = self.start_mleak("record", "--backend", "preload", "-o", "x.mlk", *options, "--", program,
                                    nr, "on", stdin=subprocess.PIPE, **self.as_user)
        self.assertEqual(read_line(recorder), "on")
        return recorder, command_of(recorder.pid)

    def cpu_ticks(self, pid):
        with open("/proc/%d/stat" % pid) as stat:
            return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))

    def test_killed_target_leaves_what_it_did(self):
        program = self.compile("counted", COUNTED)
        for _ in range(5):
            recorder, pid = self.start_counting(program, "1000000000")
            recorder.stdin.write(b"x")
            wait_until(lambda: self.cpu_ticks(pid) >= 10, "it does not run")
            os.kill(pid, signal.SIGKILL)
            result = self.finish(recorder)
            self.assertEqual(result.status, -signal.SIGKILL)
            totals = parse_totals(self.report(self.path("x.mlk")))
            self.assertGreater(totals.allocations.blocks, 1000)
            self.assertIn(totals.allocations.blocks - totals.frees.blocks, (0, 1))
            self.assertEqual(totals.lost, 0)

    def test_target_runs_on_when_the_recorder_is_killed(self):
        program = self.compile("counted", COUNTED)
        recorder, pid = self.start_counting(program, "3000000")
        pidfd = os.pidfd_open(pid)
        recorder.stdin.write(b"x")
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        # Each time that it waited for a recorder which is not there would take as long as this.
        end = time.monotonic() + BLOCK_SECONDS
        while time.monotonic() < end:
            try:
                signal.pidfd_send_signal(pidfd, 0)
            except ProcessLookupError:
                break
            with open("/proc/%d/stat" % pid) as stat:
                if stat.read().split()[2] == "Z":
                    break
            time.sleep(0.01)
        else:
            os.kill(pid, signal.SIGKILL)
            self.fail("the target still runs")
        os.close(pidfd)

    def test_a_stopped_recorder_holds_the_target_up_no_longer_than_told(self):
        program = self.compile("counted", COUNTED)
        recorder, pid = self.start_counting(program, "300000", "--on-full", "block=300ms")
        hold(recorder)
        recorder.stdin.write(b"x")
        wait_until(lambda: state_of(pid) == "Z", "the target still waits")
        os.kill(recorder.pid, signal.SIGCONT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0)
        seen, lost = re.search(r": (\d+) allocations", result.err), re.search(
            r"lost: (\d+) allocations", result.err)
        self.assertEqual(int(seen.group(1)) + int(lost.group(1)), 300000)
