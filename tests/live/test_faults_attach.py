"""What every thread does at attach is in the trace, and fills up what later stacks lack."""

import fcntl
import os
import re
import sys

from faulttest import FaultCase, Truth
from mleaktest import ROOT, needs_bpf, parse_folded, parse_totals

WAITERS = r"""
#include <pthread.h>
#include <unistd.h>
static void *waiter(void *arg)
{
	for (;;)
		pause();
	return arg;
}
static inline void start_waiters(int n)
{
	pthread_t t;
	while (n-- > 0)
		pthread_create(&t, NULL, waiter, NULL);
	usleep(50000);
}
"""


def is_sleeping(pid):
    with open("/proc/%d/syscall" % pid) as syscall:
        return syscall.read().split()[0] in ("35", "230")  # nanosleep, clock_nanosleep


@needs_bpf
class SnapshotTest(FaultCase):
    def with_threads(self):
        self.write("waiters.h", WAITERS.encode())
        return self.start(self.compile("target", "-pthread", "-include", self.path("waiters.h"),
                                       "-DPREPARE=start_waiters(5);"))

    def places(self, pid):
        """Stack pointer and pc of each thread, all of which wait in the kernel, as that tells: for what
        read(2) or pause(2) waits for."""
        found = {}
        for tid in os.listdir("/proc/%d/task" % pid):
            words = []
            while not words or words[0] not in ("0", "34"):
                with open("/proc/%d/task/%s/syscall" % (pid, tid)) as syscall:
                    words = syscall.read().split()
            found[int(tid)] = tuple(int(word, 16) for word in words[-2:])
        return found

    def recorded_places(self, dump):
        found = {}
        for tid, regs in re.findall(r"^  STACK .*?, tid (\d+), .*?, regs ([0-9a-f ]+), stack [1-9]", dump, re.M):
            words = [int(word, 16) for word in regs.split()]
            found[int(tid)] = (words[7], words[16])
        return found

    def test_every_thread_is_where_the_kernel_says(self):
        target = self.with_threads()
        places = self.places(target.pid)
        self.assertEqual(len(places), 6)
        mleak = self.attach(target.pid)
        self.tell(target, "early", 1)
        said = self.stop(mleak)
        dump = self.dump()
        self.assertEqual(self.recorded_places(dump), places)
        self.assertLess(dump.index("\n  STACK "), dump.index("\n  ALLOC "))
        self.assertRegex(said, r"stacks of 6 threads at attach; they were stopped for [\d.]+ ms")

    def attach_while_locked(self, pid, sleeps):
        """Begin to record while another has the lock of a reader: until the recorder waits for it
        if @sleeps, else until the recording has begun.  Returns the recorder."""
        trace = self.path("x.mlk")
        if os.path.exists(trace):
            os.remove(trace)
        with open("/proc/%d/auxv" % pid) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            mleak = self.start_mleak("record", "-o", trace, "-p", str(pid))
            while not os.path.exists(trace) and not (sleeps and is_sleeping(mleak.pid)):
                self.assertIsNone(mleak.poll())
        self.wait_for_probes(mleak)
        return mleak

    def test_another_reader_is_waited_for(self):
        target = self.with_threads()
        self.places(target.pid)
        said = [self.stop(self.attach_while_locked(target.pid, True)) for _ in range(5)]
        # of a machine that is busy, one may come too late
        self.assertIn("stacks of 6 threads at attach", "".join(said))

    def test_another_reader_that_stays_is_told_of(self):
        target = self.with_threads()
        mleak = self.attach_while_locked(target.pid, False)
        self.tell(target, "early", 1)
        self.assertIn("current stacks of process %d are not recorded: another program is "
                      "reading them\n" % target.pid, self.stop(mleak))
        self.assert_whole(parse_totals(self.report(self.path("x.mlk"))))

    def test_second_reader_reads_the_same(self):
        target = self.with_threads()
        self.places(target.pid)
        mleak = self.attach(target.pid)
        self.stop(mleak)
        second = self.finish(self.spawn([sys.executable, os.path.join(ROOT, "tests", "trace_reader.py"),
                                         "--full", self.path("x.mlk")]))
        self.assertEqual(second.err, "")
        self.assertEqual(self.mleak("report", "--dump=full", self.path("x.mlk")).out, second.out)
        self.assertEqual(second.out.count("\n  STACK "), 6)

    def paths(self, *options):
        target = self.start(self.compile("target"))
        mleak = self.attach(target.pid, *options)
        self.tell(target, "early", 3)
        self.tell(target, "late", 2)
        self.stop(mleak)
        report = self.report(self.path("x.mlk"))
        folded = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        return {tuple(stack.frames): stack.bytes for stack in folded}, parse_totals(report), report

    def test_it_continues_stacks_that_were_cut_and_they_are_not_called_complete(self):
        whole, totals, _ = self.paths()
        self.assert_whole(totals)
        self.assertEqual(len(whole), 2)
        cut, totals, report = self.paths("--stack-size=128")
        self.assertEqual((totals.complete, totals.of), (0, 5))
        self.assertIn("bytes from another moment: 5", report)
        self.assertEqual({frames[1:]: size for frames, size in cut.items()}, whole)
        self.assertEqual({frames[0] for frames in cut}, {"[incomplete]"})

    def test_a_command_has_none_and_needs_none(self):
        self.record("true")
        self.assertNotIn("STACK flags", self.dump())

    def test_blocks_from_before_are_counted_as_such_when_freed(self):
        target = self.start(self.compile("target"))
        before = self.tell(target, "early", 30)
        mleak = self.attach(target.pid)
        self.tell(target, "late", 5)
        truth = self.tell(target, "free", 33)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth, before), Truth(0, 0))
        report = self.report(self.path("x.mlk"))
        self.assertRegex(report, r"\n  older blocks +30  freed, but allocated before the recording")
        self.assertNotIn("unknown frees", report)
        totals = parse_totals(report)
        self.assertEqual((totals.frees.blocks, totals.outstanding.blocks), (3, 2))
