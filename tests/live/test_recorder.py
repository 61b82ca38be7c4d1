"""What the recorder is to its target: before it in the queue, and never the cause of its end."""

import os
import re

from mleaktest import MLEAK_FAST, Case, needs_bpf, wait_until

SLEEPS = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	for (;;) {
		kept = malloc(32);
		usleep(10000);
	}
}
"""

# Runs a program that may not use perf_event_open(2), through which the notices come.
BLIND = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	(void)argc;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return 9;
	execv(argv[1], argv + 1);
	return 9;
}
"""

# Six children, which allocate ten blocks each and end at once.
FORKS = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	for (int i = 0; i < 6; i++) {
		if (!fork()) {
			for (int k = 0; k < 10; k++)
				kept = malloc(100);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
"""

# Wants to end with its parent; prints whether it came to its own end.
LOYAL = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int i = 0; i < 200; i++) {
		kept = malloc(32);
		usleep(10000);
	}
	return write(1, "done\n", 5) != 5;
}
"""

# Runs itself three times more, by another thread than the main one; allocates fifty blocks each time.
RELAY = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
static char *next[] = {"relay", "x", NULL, NULL, NULL, NULL};
static void *run(void *arg)
{
	execv("/proc/self/exe", next);
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	(void)argv;
	for (int i = 0; i < 50; i++)
		kept = malloc(64);
	if (argc == 5)
		return 0;
	for (int i = 1; i <= argc; i++)
		next[i] = "x";
	if (pthread_create(&thread, NULL, run, NULL))
		return 9;
	pthread_join(thread, NULL);
	return 9;
}
"""


@needs_bpf
class Recorder(Case):
    def compile(self, name, code, *flags):
        source = self.write(name + ".c", code.encode())
        built = self.spawn(["cc", "-g", "-O0", "-o", self.path(name), source, *flags])
        self.assertEqual(self.finish(built).status, 0)
        return self.path(name)

    def wait_for(self, path):
        wait_until(lambda: os.path.exists(path), "there is no %s" % path)

    def test_the_recorder_goes_before_who_fills_the_ring(self):
        target = self.spawn([self.compile("sleeps", SLEEPS)])
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "-p", str(target.pid), "-o", trace)
        self.wait_for(trace)
        nice = wait_until(lambda: os.getpriority(os.PRIO_PROCESS, mleak.pid), "it stays as it was")
        self.assertLess(nice, os.getpriority(os.PRIO_PROCESS, target.pid))

    def test_children_are_recorded_from_their_start_without_the_kernels_notices(self):
        blind = self.compile("blind", BLIND)
        forks = self.compile("forks", FORKS)
        trace = self.path("x.mlk")
        recorded = self.finish(
            self.spawn([blind, MLEAK_FAST, "record", "--follow", "-o", trace, "--", forks]))
        self.assertEqual(recorded.status, 0, recorded.err)
        self.assertIn("cannot listen for new mappings", recorded.err)
        self.assertIn(" 60 allocations, ", recorded.err)
        self.assertIn(" 0 lost", recorded.err)

    def test_the_end_of_the_recording_is_not_its_parents_for_the_command(self):
        loyal = self.compile("loyal", LOYAL)
        for options in ((), ("--follow",)):
            with self.subTest(options=options):
                recorded = self.mleak(
                    "record", "-d", "500ms", *options, "-o", self.path("x.mlk"), "--", loyal)
                self.assertEqual((recorded.status, recorded.out), (0, "done\n"), recorded.err)

    def test_programs_that_other_threads_begin_are_recorded_or_told_of(self):
        relay = self.compile("relay", RELAY, "-pthread")
        recorded = self.mleak("record", "-o", self.path("x.mlk"), "--", relay, "x")
        self.assertEqual(recorded.status, 0, recorded.err)
        blocks = int(re.search(r"(\d+) allocations", recorded.err)[1])
        lost = re.search(r"(\d+) programs or processes", recorded.err)
        told = int(lost[1] if lost else 0) + recorded.err.count("; recorded from ")
        self.assertGreaterEqual(blocks + 50 * told, 4 * 50, recorded.err)
