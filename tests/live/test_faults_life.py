"""Processes that end, and programs that begin, while the recorder is late or cannot look at them."""

import os
import shutil
import signal
import time

from faulttest import FaultCase, KernelTable
from mleaktest import LONG, hold, is_traced, needs_bpf, read_line, wait_until

# Forks NUMBER children that end at once, and waits for them.
BRIEF = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static inline void brief(int n)
{
	while (n-- > 0) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
}
"""

# Forks NUMBER children that allocate 700 blocks each and end, with a thread of their own.
KEEPING = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept_by_child;
static void *allocate(void *arg)
{
	for (int i = 0; i < 700; i++)
		kept_by_child = malloc(61);
	return arg;
}
static inline void keeping(int n)
{
	pthread_t thread;
	while (n-- > 0) {
		if (!fork()) {
			pthread_create(&thread, NULL, allocate, NULL);
			pthread_join(thread, NULL);
			_exit(0);
		}
		wait(NULL);
	}
}
"""

# exec(2) by another thread than the main one.
BY_THREAD = r"""
#include <pthread.h>
#include <unistd.h>
static void *run(void *path)
{
	execl(path, path, (char *)0);
	return NULL;
}
static inline void exec_by_thread(char *path)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, path);
	pthread_join(thread, NULL);
}
"""

# A program that mleak finds no allocator in, and that becomes the first one again when "go" is there.
BETWEEN = r"""
#include <unistd.h>
int main(void)
{
	while (access("go", F_OK))
		usleep(1000);
	execl("./first", "first", (char *)0);
	return 9;
}
"""


@needs_bpf
class EndedTest(FaultCase):
    def test_children_that_ended_unseen_are_not_left_in_the_table(self):
        """Another traces their parent, so that nobody holds them; the recorder stands still while
        they come and go."""
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        self.write("brief.h", BRIEF.encode())
        target = self.start(self.compile(
            "target", "-include", self.path("brief.h"),
            "-DMORE(c,n)=if(!strcmp(c,\"brief\")) brief(n);"))
        tracer = self.spawn(["strace", "-o", "/dev/null", "-p", str(target.pid)])
        wait_until(lambda: is_traced(target.pid), "strace does not attach")
        mleak = self.attach(target.pid, "--follow")
        hold(mleak)
        self.tell(target, "brief", 30)
        mleak.send_signal(signal.SIGCONT)
        self.tell(target, "early", 1)
        wait_until(lambda: self.seen()[0].allocs, "what came after the children is not recorded")
        with KernelTable(mleak.pid) as table:
            wait_until(lambda: table.keys() == {(target.pid,)}, "children are left in the table")
        said = self.stop(mleak)
        tracer.terminate()
        self.assertRegex(said, r"another process traces it")

    def test_blocks_and_threads_that_ended_leave_the_filters_tables(self):
        self.write("keeping.h", KEEPING.encode())
        target = self.start(self.compile(
            "target", "-pthread", "-include", self.path("keeping.h"),
            "-DMORE(c,n)=if(!strcmp(c,\"keeping\")) keeping(n);"))
        mleak = self.attach(target.pid, "--follow", "--trigger", "1G")
        truth = self.tell(target, "early", 23)
        with KernelTable(mleak.pid, entries=1 << 20, key_size=16) as blocks, \
                KernelTable(mleak.pid, entries=1 << 18, key_size=8) as threads:
            self.tell(target, "keeping", 5)
            end = time.monotonic() + LONG
            while (len(blocks.keys()) != truth.allocs or
                   threads.keys() != {(target.pid, target.pid)}):  # tid, tgid
                self.assertLess(time.monotonic(), end, (len(blocks.keys()), threads.keys()))
                time.sleep(0.05)
            time.sleep(0.6)
            self.assertEqual({key[2] for key in blocks.keys()}, {target.pid})
            self.assertEqual(len(blocks.keys()), truth.allocs)
        self.stop(mleak)


@needs_bpf
class ExecTest(FaultCase):
    def test_program_that_comes_again_after_one_without_an_allocator_is_recorded(self):
        """Another thread begins the one between: the probes in place end with the main thread."""
        self.write("by_thread.h", BY_THREAD.encode())
        self.write("between.c", BETWEEN.encode())
        self.finish(self.spawn(["gcc", "-O2", "-static", "-s", "-o", self.path("between"),
                                self.path("between.c")]))
        target = self.start(self.compile(
            "first", "-pthread", "-include", self.path("by_thread.h"),
            "-DMORE(c,n)=if(!strcmp(c,\"exec\")) exec_by_thread(\"./between\");"), cwd=self.dir)
        mleak = self.attach(target.pid)
        self.tell(target, "early", 23)
        target.stdin.write(b"exec 1\n")
        self.wait_for_words(mleak, r"cannot record process %d: '.*between' is statically linked" % target.pid)
        self.assertIn("between", os.readlink("/proc/%d/exe" % target.pid))
        self.write("go", b"")
        self.assertEqual(read_line(target), "ready")
        self.wait_for_words(mleak, "runs 'first' now")
        self.tell(target, "late", 31)
        self.stop(mleak)
        dump = self.dump()
        self.assertEqual(dump.count("size 47, func malloc"), 23)
        self.assertEqual(dump.count("size 53, func malloc"), 31)
