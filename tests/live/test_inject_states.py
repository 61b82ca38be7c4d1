"""Code put into processes whose threads are in unusual states: the main one has ended, one is the kernel's own, one
cannot be stopped, all are stopped by job control, one becomes another program meanwhile."""

import os
import random
import signal
import subprocess
import time

from injecttest import InjectCase, State, ours_in
from mleaktest import descendants, read_line, state_of, wait_until

REFUSED = 125

# Each line on stdin is answered by "leaked", after 23 blocks of 47 bytes; at "end" the main thread ends.
PROGRAM = r"""
#include <linux/io_uring.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
#define END __asm__ volatile("" : : : "memory")
static void *volatile kept;
static char **args;
static sem_t ends;
FRAME static void leak_here(void) { kept = malloc(47); END; }
FRAME static void leak_all(void) { for (int i = 0; i < 23; i++) leak_here(); END; }
FRAME static void *serve(void *arg)
{
	char line[16];
	ssize_t n = write(1, "ready\n", 6);
	while (n > 0 && (n = read(0, line, sizeof(line))) > 0) {
		if (!strncmp(line, "end", 3))
			sem_post(&ends);
		else
			leak_all();
		n = write(1, "leaked\n", 7);
	}
	_exit(0);
	return arg;
}

/* Reads a pipe that stays empty, in a thread of the kernel's. */
static int begin_io(void)
{
	static struct io_uring_params p;
	static char byte;
	int ring = (int)syscall(SYS_io_uring_setup, 4, &p), pipes[2];
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, 3, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *e = mmap(0, p.sq_entries * sizeof(*e), 3, MAP_SHARED, ring, IORING_OFF_SQES);
	if (ring < 0 || sq == MAP_FAILED || e == MAP_FAILED || pipe(pipes))
		return -1;
	*e = (struct io_uring_sqe){.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = pipes[0],
				   .addr = (uintptr_t)&byte, .len = 1};
	*(unsigned *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1 ? 0 : -1;
}

static void *become(void *arg)
{
	usleep(5000);
	execv(args[0], args);
	_exit(96);
	return arg;
}

static void *spin(void *arg)
{
	for (;;)
		free(malloc(30));
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t t;
	args = argv;
	sem_init(&ends, 0, 0);
	if (!strcmp(what, "io") && begin_io())
		return write(1, "none\n", 5) != 5;
	if (!strcmp(what, "exec")) {
		pthread_create(&t, 0, spin, 0);
		pthread_create(&t, 0, become, 0);
		for (;;)
			pause();
	}
	if (strcmp(what, "main") && strcmp(what, "vfork"))
		serve(NULL);
	pthread_create(&t, 0, serve, 0);
	if (!strcmp(what, "vfork") && !vfork()) {
		syscall(SYS_pause);
		_exit(0);
	}
	while (sem_wait(&ends))
		;
	syscall(SYS_exit, 0);
}
"""
PATH = ["serve", "leak_all", "leak_here"]


class StatesTest(InjectCase):
    def start(self, what):
        process = self.spawn([self.build("program", PROGRAM), what], stdin=subprocess.PIPE)
        self.line = read_line(process)
        return process

    def ask(self, process, what="leak"):
        process.stdin.write(what.encode() + b"\n")
        self.assertEqual(read_line(process), "leaked")

    def end(self, process):
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)

    def assert_recorded(self, process, state, mleak):
        """It leaks once more, and as often as it did since that @mleak records."""
        self.ask(process)
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH), 23 * 47)
        self.assert_unchanged(self.other_thread(process), state)
        self.end(process)

    def other_thread(self, process):
        """The newest: /proc tells nothing of a main thread that has ended."""
        return max(map(int, os.listdir("/proc/%d/task" % process.pid)))

    def end_main(self, process):
        self.ask(process, "end")
        wait_until(lambda: state_of(process.pid) == "Z", "the main thread does not end")

    def test_main_thread_had_ended(self):
        process = self.start("main")
        self.end_main(process)
        state = State(self.other_thread(process))
        self.assert_recorded(process, state, self.attach(process.pid))

    def test_main_thread_ends_meanwhile(self):
        process = self.start("main")
        state = State(process.pid)
        mleak = self.attach(process.pid)
        self.end_main(process)
        self.assert_recorded(process, state, mleak)

    def test_threads_of_the_kernel(self):
        """io_uring's have no control blocks."""
        process = self.start("io")
        if self.line != "ready":
            self.skipTest("there is no io_uring here")
        self.assertEqual(len(os.listdir("/proc/%d/task" % process.pid)), 2)
        state = State(process.pid)
        self.assert_recorded(process, state, self.attach(process.pid))

    def test_stopped_by_job_control(self):
        """It stays stopped, and goes on when it is told to."""
        process = self.start("")
        state = State(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(process.pid) == "T", "it does not stop")
        mleak = self.attach(process.pid)
        wait_until(lambda: state_of(process.pid) == "T", "it does not stay stopped")
        process.send_signal(signal.SIGCONT)
        self.ask(process)
        process.send_signal(signal.SIGSTOP)
        self.detach(mleak)
        wait_until(lambda: state_of(process.pid) == "T", "it does not stay stopped")
        self.assert_unchanged(process.pid, state)
        self.assertEqual(self.sum_of(PATH), 23 * 47)
        process.send_signal(signal.SIGCONT)
        self.end(process)

    def test_a_thread_that_cannot_be_stopped(self):
        """It waits for its child of vfork(); the other one does not stand until it is given up."""
        process = self.start("vfork")
        child, = wait_until(lambda: descendants(process.pid), "there is no child")
        tid = self.other_thread(process)
        state = State(process.pid)
        mleak = self.start_inject(process.pid)
        states = []
        while mleak.poll() is None:
            states.append(state_of(process.pid, tid))
            time.sleep(0.001)
        result = self.finish(mleak)
        self.assertEqual(result.status, REFUSED, result.err)
        self.assertIn("has a thread that does not stop: it waits for", result.err)
        self.assertLess(states.count("t"), len(states) / 4)
        self.assert_unchanged(process.pid, state)
        self.ask(process)
        os.kill(child, signal.SIGKILL)
        self.end(process)

    def test_it_becomes_another_program_meanwhile(self):
        """By another thread than the main one, again and again."""
        process = self.spawn([self.build("program", PROGRAM), "exec"])
        for _ in range(20):
            time.sleep(random.uniform(0, 0.005))
            result = self.finish(self.start_inject(process.pid, "--duration", "1ms"))
            self.assertIn(result.status, (0, REFUSED), result.err)
            self.assertIsNone(process.poll())
        wait_until(lambda: not ours_in(process.pid), "something stays")
