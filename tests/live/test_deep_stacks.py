"""Stacks that are longer than an event may be have all of their callers, where the thread stays so deep."""

import os
import re
import subprocess

from backends import both_backends
from mleaktest import LONG, Case, chunk_starts, parse_folded, wait_until

CALLS, BLOCKS, SIZE = 47, 23, 47
EVENTS, STACKS = 4, 9  # types of chunks
AT_ONCE, A_SECOND = 8, 8  # times that stacks are read: so many without a pause, and in the long run
PROGRAM = b"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noipa))
static void *volatile kept;
static const char *go;
static int rounds;
ALONE static void leak_first(void) { kept = malloc(31); }
ALONE static void leak_later(void) { kept = malloc(47); }
ALONE static void pass_by(size_t size)
{
	kept = malloc(size);
	free(kept);
}
ALONE static void at_the_end(void)
{
	if (rounds) {
		pass_by(53);
		return;
	}
	leak_first();
	while (access(go, F_OK)) {
		usleep(1000);
		pass_by(61);
	}
	for (int i = 0; i < 23; i++)
		leak_later();
	__asm__ volatile("");
}
ALONE static void descend(int n)
{
	volatile char used[9001];
	used[n] = 1;
	if (n > 1)
		descend(n - 1);
	else
		at_the_end();
	used[n + 1] = 2;
}
ALONE static void wide(void)
{
	volatile char unused[300000];
	at_the_end();
	__asm__ volatile("" : : "r"(unused) : "memory");
}
ALONE static void *in_thread(void *arg)
{
	if (*(char *)arg != 'f')
		pass_by(1);
	if (*(char *)arg == 'w')
		wide();
	else
		descend(47);
	__asm__ volatile("");
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;

	go = argv[2];
	if (*argv[1] == 'r') {
		for (rounds = 500; rounds; rounds--) {
			pass_by(59);
			descend(47);
		}
		descend(47);
	} else if (argc > 3) {
		if (pthread_create(&thread, NULL, in_thread, argv[1]))
			return 1;
		pthread_join(thread, NULL);
	} else
		in_thread(argv[1]);
	return 0;
}
"""


@both_backends
class DeepStacksTest(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.path("x.mlk")
        subprocess.run(["gcc", "-O1", "-pthread", "-o", self.path("program"),
                        self.write("program.c", PROGRAM)], check=True, timeout=LONG)

    def begin(self, *words, options=()):
        return self.start_mleak("record", "-o", self.trace, *options, "--", self.path("program"), words[0],
                                self.path("go"), *words[1:])

    def chunks(self, kind):
        if not os.path.exists(self.trace):
            return 0
        with open(self.trace, "rb") as trace:
            data = trace.read()
        return sum(data[at + 12:at + 14] == bytes([kind, 0]) for at in chunk_starts(data))

    def stacks_read(self):
        """How often a thread's stack was read for the trace."""
        return self.chunks(STACKS)

    def finish_it(self, mleak, read=True):
        wait_until(lambda: self.chunks(STACKS if read else EVENTS), "the trace has no such chunk")
        self.write("go", b"")
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)

    def recorded(self, *words, options=(), read=True):
        """The callers of each of the blocks that were allocated at last, as the report names them."""
        self.finish_it(self.begin(*words, options=options), read)
        stacks = [stack for stack in parse_folded(self.report(self.trace, "--format=folded"))
                  if stack.frames[-1] == "leak_later"]
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        return [stack.frames for stack in stacks]

    def assert_callers(self, stacks, *callers):
        for frames in stacks:
            self.assertEqual(frames[-len(callers):], list(callers))
            # they were read at another moment than the event's
            self.assertIn("[incomplete]", frames)

    def test_deep_calls(self):
        stacks = self.recorded("deep")
        self.assert_callers(stacks, "main", "in_thread", *CALLS * ["descend"], "at_the_end", "leak_later")

    def test_where_the_stack_begins_is_in_no_event(self):
        """None was so short that it was not cut."""
        self.assert_callers(self.recorded("first"), "main", "in_thread", *CALLS * ["descend"], "at_the_end",
                            "leak_later")

    def test_deep_calls_of_a_thread(self):
        stacks = self.recorded("deep", "thread")
        self.assert_callers(stacks, "in_thread", *CALLS * ["descend"], "at_the_end", "leak_later")
        for frames in stacks:  # and the C library's that called it, which may have no name
            self.assertGreater(frames.index("in_thread"), 1)

    def test_a_thread_whose_stack_begins_somewhere(self):
        """Above it is memory that is nobody's business."""
        for frames in self.recorded("first", "thread", read=False):
            self.assertEqual(frames[:2], ["[incomplete]", "descend"])
        self.assertEqual(self.stacks_read(), 0)

    def test_a_frame_of_which_nothing_was_touched(self):
        self.assert_callers(self.recorded("wide"), "main", "in_thread", "wide", "at_the_end", "leak_later")

    def test_a_stack_that_the_user_wants_short_stays_short(self):
        for frames in self.recorded("deep", options=("--stack-size", "32K"), read=False):
            self.assertLess(frames.count("descend"), CALLS)
        self.assertEqual(self.stacks_read(), 0)

    def test_it_is_not_done_at_each_event(self):
        """Each time the thread comes down again, what lies in between is not known."""
        self.finish_it(self.begin("rounds"))
        times = [int(ns) for ns in re.findall(r"ALLOC .*\btime (\d+)", self.report(self.trace, "--dump"))]
        seconds = (max(times) - min(times)) / 1e9
        self.assertLessEqual(self.stacks_read(), AT_ONCE + A_SECOND * seconds)
