"""Alternate stacks for signals to which only the kernel points are not lost."""

import os
import subprocess

from mleaktest import LONG, MLEAK_FAST, Case, needs_bpf, read_line, wait_until

# Two threads have such a stack each, of which they forget the address; 23 blocks of 47 bytes are lost.
PROGRAM = b"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
FRAME static void set(size_t size)
{
	stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
	if (sigaltstack(&stack, NULL))
		abort();
	memset(&stack, 0, sizeof(stack));
	__asm__ volatile("" : : "r"(&stack) : "memory");
}
FRAME static void lose_here(void)
{
	for (int i = 0; i < 23; i++)
		((volatile char *)malloc(47))[0] = 1;
}
FRAME static void wipe(void)
{
	volatile char words[8192];
	memset((char *)words, 0, sizeof(words));
}
static void *run(void *say)
{
	set(65537);
	wipe();
	if (write(1, "ready\\n", say ? 6 : 0) != 6)
		abort();
	for (;;)
		pause();
}
int main(int argc, char **argv)
{
	pthread_t thread;
	char c;
	(void)argv;
	if (argc > 1 && (write(1, "begun\\n", 6) != 6 || read(0, &c, 1) != 1))
		return 1;
	set(32771);
	lose_here();
	wipe();
	if (pthread_create(&thread, NULL, run, &thread))
		return 1;
	return read(0, &c, 1) != 1;
}
"""


@needs_bpf
class SignalStackTest(Case):
    program = MLEAK_FAST

    def begin(self, *args):
        self.write("stacks.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", self.path("stacks"), self.path("stacks.c")],
                       check=True, timeout=LONG)
        return self.spawn([self.path("stacks"), *args], stdin=subprocess.PIPE)

    def lost(self, options=()):
        text = self.report(self.path("x.mlk"), "--lost", "--format=folded", *options)
        return sum(int(line.rpartition(" ")[2]) for line in text.splitlines())

    def test_those_from_before(self):
        process = self.begin()
        self.assertEqual(read_line(process), "ready")
        result = self.mleak("reach", "-p", str(process.pid), "-o", "x.mlk")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn(" 23 blocks are lost, ", result.out)
        held = self.mleak("why", self.path("x.mlk")).out
        self.assertRegex(held, r"(?m)^ +64\.0 KiB .* 1  stack for signals of thread \d+")
        self.assertRegex(held, r"(?m)^ +32\.0 KiB .* 1  stack for signals of thread %d \(stacks\)$" % process.pid)

    def test_those_that_are_recorded(self):
        process = self.begin("wait")
        self.assertEqual(read_line(process), "begun")
        recorder = self.start_mleak("record", "--reach", "-p", str(process.pid), "-o", "x.mlk")
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "nothing is recorded")
        process.stdin.write(b"x")
        self.assertEqual(read_line(process), "ready")
        recorder.terminate()
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.lost(), 23 * 47)
