"""The life of targets: threads and processes that are gone when their events are taken in, numbers that
come again, and a server that forks to save."""

import os
import re
import signal
import time
import unittest

from mleaktest import (LONG, MLEAK_FAST, Case, hold, needs_bpf, parse_folded, parse_totals,
                       read_line, state_of, wait_until)
from test_family import FAMILY, truths

# On SIGUSR1: loads a library, calls it in a thread with a name and in one without, and ends.
LATE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void (*run)(int);
static void *in_thread(void *name)
{
	if (name)
		pthread_setname_np(pthread_self(), name);
	run(17);
	return NULL;
}
int main(int argc, char **argv)
{
	char line[20];
	sigset_t set;
	pthread_t threads[2];
	int sig;
	(void)argc;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (write(1, line, snprintf(line, sizeof(line), "%d\n", (int)getpid())) < 0)
		return 9;
	sigwait(&set, &sig);
	run = (void (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "run");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, in_thread, i ? "courier" : NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
"""

PLUGIN = r"""
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
__attribute__((noinline)) void plugin_leak(int i)
{
	char room[700];
	memset(room, i, sizeof(room));
	kept = malloc(211);
	__asm__ volatile("" : : "r"(room) : "memory");
}
void run(int n)
{
	for (int i = 0; i < n; i++)
		plugin_leak(i);
}
"""

# Forks three children, one after the other, that have the same number.
AGAIN = r"""
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) void leak_here(void) { kept = malloc(103); }
int main(void)
{
	char line[40];
	pid_t number = 0;
	for (int i = 0; i < 3; i++) {
		struct clone_args args = {.exit_signal = SIGCHLD,
					  .set_tid = number ? (uintptr_t)&number : 0,
					  .set_tid_size = number ? 1 : 0};
		pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (!pid) {
			for (int k = 0; k < 7 + i; k++)
				leak_here();
			_exit(0);
		}
		if (pid < 0)
			return 8;
		number = pid;
		waitpid(pid, NULL, 0);
	}
	if (write(1, line, snprintf(line, sizeof(line), "number=%d\n", (int)number)) < 0)
		return 9;
	return 0;
}
"""


class LifeCase(Case):
    program = MLEAK_FAST

    def compile(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        built = self.finish(self.spawn(["gcc", "-O2", "-g", "-o", name, name + ".c", *flags]))
        self.assertTrue(os.path.exists(self.path(name)), built.err)
        return self.path(name)


@needs_bpf
class LifeTest(LifeCase):
    def test_process_that_is_gone_when_its_events_are_taken_in(self):
        """Its mappings and the names of its threads cannot be read any more."""
        plugin = self.compile("plugin.so", PLUGIN, "-shared", "-fPIC")
        late = self.compile("late", LATE, "-pthread", "-ldl")
        process = self.start_mleak("record", "-o", "x.mlk", "--", late, plugin)
        pid = int(read_line(process))
        hold(process)
        os.kill(pid, signal.SIGUSR1)
        wait_until(lambda: state_of(pid) == "Z", "the program does not end")
        process.send_signal(signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)
        trace = self.path("x.mlk")
        self.assert_whole(parse_totals(self.report(trace)))
        stacks = parse_folded(self.report(trace, "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks if "plugin_leak" in s.frames), 2 * 17 * 211)
        names = re.findall(r"THREAD tgid \d+, tid \d+, name (.*)$", self.report(trace, "--dump"),
                           re.M)
        self.assertEqual(sorted(set(names)), ["courier", "late"])
        self.assertGreaterEqual(len(names), 3)

    def test_numbers_that_come_again(self):
        again = self.compile("again", AGAIN)
        trace, out = self.record(again, options=("--follow",))
        number = int(out.split("=")[1])
        text = self.report(trace, "--per-process")
        found = re.findall(r"^  process %d .*: ([\d,]+) allocations, 0 frees" % number, text, re.M)
        self.assertEqual(sorted(found), ["7", "8", "9"], text)
        self.assertNotIn("implied frees", text)
        totals = parse_totals(self.report(trace, "--pid", str(number)))
        self.assertEqual(totals.outstanding.blocks, 24)
        self.assertEqual(totals.outstanding.bytes, 24 * 103)

    def test_exec_into_another_allocator_is_recorded_soon(self):
        """What was given out before is missing: of two blocks that come each two milliseconds."""
        slow = FAMILY.replace("noise(57);", "noise(57); usleep(2000);")
        static = self.compile("static", slow, "-static", "-pthread")
        result = self.mleak("record", "-o", "x.mlk", "--", "sh", "-c", "exec %s leaf 900" % static)
        self.assertEqual(result.status, 0, result.err)
        gap_ms = float(re.search(r"recorded from ([\d.]+) ms after", result.err)[1])
        truth, = truths(result.out)
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertGreater(totals.allocations.blocks, truth["allocs"] - 2 * (gap_ms / 2 + 5))


@needs_bpf
class RedisTest(LifeCase):
    """bgsave forks: the child writes the data that it has from its parent, and ends."""

    def cli(self, *args):
        return self.finish(self.spawn(["redis-cli", "-s", self.path("sock"), *args])).out.strip()

    def serve(self, *options):
        recorder = self.start_mleak("record", "-o", "x.mlk", *options, "--", self.redis_server(),
                                    "--port", "0", "--unixsocket", self.path("sock"), "--save", "",
                                    "--dir", self.dir, "--daemonize", "no", "--logfile",
                                    self.path("log"))
        end = time.monotonic() + LONG
        while self.cli("ping") != "PONG":
            self.assertLess(time.monotonic(), end, "redis does not answer")
            self.assertIsNone(recorder.poll())
            time.sleep(0.1)
        self.cli("debug", "populate", "1000")
        self.cli("mset", *(word for i in range(500) for word in ("key%d" % i, "value" * 20)))
        pid = int(re.search(r"process_id:(\d+)", self.cli("info", "server"))[1])
        self.cli("bgsave")
        while "rdb_bgsave_in_progress:1" in self.cli("info", "persistence"):
            self.assertLess(time.monotonic(), end, "redis does not finish to save")
            time.sleep(0.1)
        self.assertIn("rdb_last_bgsave_status:ok", self.cli("info", "persistence"))
        self.assertTrue(os.path.exists(self.path("dump.rdb")))
        self.cli("shutdown", "nosave")
        return pid, self.finish(recorder)

    def test_bgsave_followed(self):
        pid, result = self.serve("--follow")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("1 child process was recorded as well", result.err)
        text = self.report(self.path("x.mlk"), "--per-process")
        child = re.search(r"^  process (\d+) .*: ([\d,]+) allocations.*; forked by %d$" % pid, text,
                          re.M)
        self.assertIsNotNone(child, text)
        self.assertNotEqual(child[2], "0")
        self.assertNotIn("implied frees", text)
        self.assertEqual(parse_totals(text).lost, 0, text)

    def test_bgsave_without_follow(self):
        pid, result = self.serve()
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("1 child process was started and not recorded; --follow records it",
                      result.err)
        text = self.report(self.path("x.mlk"))
        self.assertNotIn("  process ", text)
        self.assertEqual(parse_totals(text).lost, 0, text)


if __name__ == "__main__":
    unittest.main()
