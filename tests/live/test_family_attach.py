"""Processes that run already, and the children that they make from then on, in one recording."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from mleaktest import LONG, is_traced, needs_bpf, parse_totals, read_line, wait_until
from test_family import FamilyCase, truths


# Makes a child each millisecond.  Later each leaks, and all end with it.
FORKS = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#define NR 300
static void leak(int sig)
{
	(void)sig;
}
int main(void)
{
	char c;
	int pids[NR];
	signal(SIGUSR1, leak);
	if (write(1, "ready\n", 6) != 6 || read(0, &c, 1) != 1)
		return 1;
	for (int i = 0; i < NR; i++) {
		sigset_t none, usr1;
		sigemptyset(&none);
		sigemptyset(&usr1);
		sigaddset(&usr1, SIGUSR1);
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sigsuspend(&none);
			for (int k = 0; k < 23; k++)
				((volatile char *)malloc(47))[0] = 1;
			if (write(1, "x", 1) != 1)
				return 1;
			for (;;)
				pause();
		}
		usleep(1000);
	}
	if (write(1, "done\n", 5) != 5 || read(0, &c, 1) != 1)
		return 1;
	for (int i = 0; i < NR; i++)
		kill(pids[i], SIGUSR1);
	return read(0, &c, 1) != 1;
}
"""


@needs_bpf
class AttachFamilyTest(FamilyCase):
    """Children of a process that ran already are stopped soon after their start."""

    def begin(self, kinds):
        """The sample, which waits for a byte before it does anything."""
        process = self.spawn([self.family, kinds, "wait"], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        return process

    def attach(self, *processes, options=()):
        """Start mleak on @processes, and wait until it records them."""
        pids = [word for p in processes for word in ("-p", str(p.pid))]
        recorder = self.start_mleak("record", "-o", self.path("x.mlk"), *options, *pids)
        end = time.monotonic() + LONG
        while not os.path.exists(self.path("x.mlk")):
            self.assertIsNone(recorder.poll(), "mleak ended at once")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        return recorder

    def go(self, process):
        process.stdin.write(b"x")
        return truths(process.stdout.read().decode())

    def test_several_processes_each_with_its_own_sums(self):
        programs = [self.begin(kinds) for kinds in ("", "f", "")]
        recorder = self.attach(*programs)
        firsts = [self.go(p)[-1] for p in programs]
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("1 child process was started and not recorded; --follow records it",
                      result.err)
        names = [re.escape("family (pid %d)" % p.pid) for p in programs]
        self.assertRegex(result.err, "of 3 processes, %s: " % ", ".join(names))
        for truth in firsts:
            self.assert_process(self.path("x.mlk"), truth)
        self.assert_sums(self.path("x.mlk"))

    def test_children_that_run_already_are_counted(self):
        """As the workers of a server: a grandchild, too.  Those that are named are recorded."""
        program = self.spawn(["sh", "-c", "sh -c 'sleep 1000 & echo $$ $!; wait' & read x; kill $(jobs -p)"],
                             stdin=subprocess.PIPE)
        pids = [int(word) for word in read_line(program).split()]
        try:
            recorder = self.attach(program, options=["--follow"])
            recorder.terminate()
            result = self.finish(recorder)
            said = re.search(r"(?m)^mleak: warning: 2 child processes, such as (\w+) \(pid (\d+)\), run already and are "
                             "not recorded: ", result.err)
            self.assertIsNotNone(said, result.err)
            self.assertIn((said[1], int(said[2])), list(zip(["sh", "sleep"], pids)))
            self.assertRegex(self.report(self.path("x.mlk")), r"(?m)^  not recorded: 2 child processes \(")
            os.remove(self.path("x.mlk"))
            options = ["--follow"] + ["--pid=%d" % pid for pid in pids]
            recorder = self.attach(program, options=options)
            recorder.terminate()
            result = self.finish(recorder)
            self.assertNotIn("already", result.err)
            self.assertIn(" of 3 processes, ", result.err)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)

    def test_each_child_that_is_started_meanwhile_is_recorded_or_counted(self):
        """None falls between the look at those that run and the notices of those to come."""
        program = self.spawn([self.compile("forks", FORKS)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(program), "ready")
        program.stdin.write(b"x")
        program.stdin.flush()
        recorder = self.attach(program, options=["--follow"])
        self.assertEqual(read_line(program), "done")
        program.stdin.write(b"x")
        program.stdin.flush()
        for _ in range(300):
            self.assertEqual(program.stdout.read(1), b"x")  # each has leaked
        recorder.terminate()
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        text = self.report(self.path("x.mlk"))
        ran = re.search(r"(?m)^  not recorded: (\d+) child process", text)
        ran = int(ran[1]) if ran else 0
        self.assertEqual(parse_totals(text).allocations.blocks, (300 - ran) * 23, result.err)
        program.stdin.write(b"x")
        program.stdin.flush()
        self.assertEqual(program.wait(LONG), 0)

    def test_one_of_several_that_ends_ends_only_itself(self):
        early, late = self.begin(""), self.begin("")
        recorder = self.attach(early, late)
        first = self.go(early)
        early.wait()
        time.sleep(0.5)
        self.assertIsNone(recorder.poll())
        second = self.go(late)
        self.assertEqual(self.finish(recorder).status, 0)
        for truth in first + second:
            self.assert_process(self.path("x.mlk"), truth)

    def start_following(self, process):
        recorder = self.attach(process, options=("--follow",))
        wait_until(lambda: is_traced(process.pid), "mleak does not trace it")
        return recorder

    def test_children_of_a_process_that_ran_already(self):
        process = self.begin("fvsntf")
        recorder = self.start_following(process)
        said = self.go(process)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"7 child processes were recorded as well")
        self.assertNotIn("after their start", result.err)
        for truth in said:
            self.assert_process(self.path("x.mlk"), truth)
        self.assert_sums(self.path("x.mlk"))

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_children_of_a_process_that_another_traces(self):
        """What they did before they were stopped is missing; how long that was is told."""
        process = self.begin("fn")
        tracer = self.spawn(["strace", "-o", "/dev/null", "-p", str(process.pid)])
        wait_until(lambda: is_traced(process.pid), "strace does not attach")
        recorder = self.attach(process, options=("--follow",))
        said = self.go(process)
        result = self.finish(recorder)
        self.finish(tracer)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("another process traces it", result.err)
        # On a busy machine one may have ended before it could be looked at.  The trace tells of all three.
        recorded = re.search(r"(\d) child process(?:es were| was) recorded as well", result.err)
        late = re.search(r"recorded from up to ([\d.]+) ms after (?:its|their) start", result.err)
        self.assertEqual(bool(late), bool(recorded), result.err)
        self.assertIn("lost: 3 programs or processes that were not recorded", result.err)
        trace = self.path("x.mlk")
        self.assertRegex(self.report(trace), r"(?m)^ +programs or processes that were not recorded: 3$")
        self.assertEqual(self.mleak("report", "--fail-on-leak=1G", trace).status, 2)
        lost = int(recorded[1] if recorded else 0) < 3
        for truth in said:
            if lost and self.mleak("report", "--pid", str(truth["pid"]), trace).status:
                continue
            text = self.report(trace, "--pid", str(truth["pid"]))
            totals = parse_totals(text)
            self.assertLessEqual(totals.allocations.blocks, truth["allocs"])
            # The grandchild sleeps for 300 ms first.
            if truth["who"] == "first" or truth["who"] == "grandchild" and float(late[1]) < 300:
                self.assertEqual(totals.allocations.blocks, truth["allocs"], text)
                self.assertEqual(totals.outstanding.bytes, truth["bytes"], text)
            self.assertNotIn("unknown frees", text)
            self.assertNotIn("implied frees", text)

    def test_followed_process_lives_on_when_the_recorder_is_killed(self):
        process = self.begin("fn")
        recorder = self.start_following(process)
        recorder.kill()
        recorder.wait()
        self.assertEqual(sorted(t["who"] for t in self.go(process)),
                         ["between", "first", "forked", "grandchild"])

    def test_followed_process_is_free_after_the_recording(self):
        process = self.begin("f")
        recorder = self.start_following(process)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(recorder).status, 0)
        with open("/proc/%d/status" % process.pid) as status:
            self.assertIn("TracerPid:\t0\n", status.read())
        self.assertEqual([t["who"] for t in self.go(process)], ["forked", "first"])
