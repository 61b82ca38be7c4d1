"""mleak record --kernel --user-stacks: stacks go on in the program for which the kernel allocates.

The program says how many objects it had made by each way through its functions.  Each eventfd has one
eventfd_ctx, which the system call allocates by kmalloc itself.
"""

import os
import re
import shutil
import signal
import subprocess
import unittest

from kerneltest import KernelCase
from mleaktest import MLEAK, TESTS, read_line, wait_until

# As in kernel_user_target.c.
BY_A, BY_B, MANY = 223, 97, 10007

A = ["by_a"] + 4 * ["make_one"]
B = ["by_b"] + 2 * ["make_one"]
OURS = {"main", "make_both", "by_a", "by_b", "make_one", "in_child"}

FAILED = 125

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_BPF, CAP_CHECKPOINT_RESTORE = 2, 19, 39, 40


class UserStacksCase(KernelCase):
    target_source = "kernel_user_target.c"
    target_flags = ("-g", "-fomit-frame-pointer", "-pthread")

    def record(self, *commands, options=("--user-stacks",)):
        trace, said = self.record_while(*commands, options=options)
        return self.contexts(trace), said

    def contexts(self, trace):
        """{functions of the program: blocks} of what eventfd(2) itself allocates by kmalloc."""
        found = {}
        for frames, blocks in self.stacks(trace, "eventfd2"):
            if not re.search("eventfd2?$", frames[-2]):
                continue
            kernel = frames.index("do_syscall_64")
            user = tuple(name for name in frames[:kernel] if name in OURS)
            found[user] = found.get(user, 0) + blocks
        return found


class UserStacksTest(UserStacksCase):
    def test_each_way_has_its_objects(self):
        found, said = self.record("make")
        self.assertEqual(found, {("main", "make_both", *A): BY_A, ("main", "make_both", *B): BY_B})
        self.assertNotIn("no room", said)
        # From the start of the program to the function of the kernel, without a gap.
        trace = self.path("x.mlk")
        for row in self.table(trace, "--function", "by_a"):
            self.assertRegex(row["stack"], "^_start;.*;main;make_both;by_a;make_one;make_one;make_one;"
                             "make_one;eventfd;entry_SYSCALL_64\\w*;do_syscall_64;")
            self.assertEqual(row["complete"], "1")

    def test_lines_of_the_program_are_those_of_its_source(self):
        self.record("make")
        with open(os.path.join(TESTS, "live", self.target_source), encoding="ascii") as source:
            lines = [number for number, line in enumerate(source, 1) if "eventfd(0, 0)" in line]
        shown = self.shown(self.path("x.mlk"), "--flat", "--function", "by_b")
        self.assertIn("make_one [%s] %s:%d" % (self.comm, os.path.join(
            TESTS, "live", self.target_source), lines[0]), shown)

    def test_what_another_thread_has_made_begins_with_that_thread(self):
        found, _ = self.record("thread")
        self.assertEqual(found, {("make_both", *A): BY_A, ("make_both", *B): BY_B})

    def test_the_report_needs_nothing_of_the_program(self):
        self.record("make")
        trace = self.path("x.mlk")
        before = self.shown(trace, "--folded", "--function", "by_a")
        self.assertIn("make_both;by_a", before)
        os.unlink(self.path(self.comm))
        self.assertEqual(self.shown(trace, "--folded", "--function", "by_a"), before)

    def test_all_events_have_them_too(self):
        found, _ = self.record("make", options=("--user-stacks", "--events"))
        self.assertEqual(found, {("main", "make_both", *A): BY_A, ("main", "make_both", *B): BY_B})

    def test_none_are_there_that_were_not_asked_for(self):
        found, said = self.record("make", options=())
        self.assertEqual(found, {(): BY_A + BY_B})
        self.assertNotIn("user space", said)

    def test_a_recording_of_long_lives_refuses_them(self):
        result = self.mleak("record", "--kernel", "--user-stacks", "--older", "1h", "-d", "1")
        self.assertEqual(result.status, FAILED)
        self.assert_one_message(result.err, naming="--older")

    @unittest.skipIf(not shutil.which("setpriv"), "setpriv is not installed")
    def test_who_may_not_look_into_processes_is_told_so(self):
        result = self.finish(self.spawn(["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", MLEAK,
                                         "record", "--kernel", "--user-stacks", "-d", "1"]))
        self.assertEqual(result.status, FAILED)
        self.assert_one_message(result.err, naming="CAP_SYS_PTRACE")

    def test_programs_of_another_mount_namespace(self):
        hidden = self.path("hidden")
        os.mkdir(hidden)
        script = ("mount -t tmpfs none %s && cp %s %s && exec %s/%s" %
                  (hidden, self.path(self.comm), hidden, hidden, self.comm))
        there = self.spawn(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE)
        self.assertEqual(read_line(there), "ready")
        recorder = self.start("--comm", self.comm, "--user-stacks")
        self.tell("make", there)
        self.stop(recorder)
        self.assertEqual(os.listdir(hidden), [])
        self.assertEqual(self.contexts(self.path("x.mlk")),
                         {("main", "make_both", *A): BY_A, ("main", "make_both", *B): BY_B})

    def test_it_keeps_no_more_privileges_than_it_takes(self):
        allowed = sum(1 << cap for cap in (CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_BPF, CAP_CHECKPOINT_RESTORE))
        recorder = self.start("--comm", self.comm, "--user-stacks")

        def kept():
            with open("/proc/%d/status" % recorder.pid) as status:
                return int(re.search(r"(?m)^CapEff:\s*(\w+)", status.read())[1], 16)

        wait_until(lambda: not kept() & ~allowed, "capabilities are kept")
        self.stop(recorder)


class GoneTest(UserStacksCase):
    """What cannot be told any more is not told, and said to be missing; what is told is right."""

    def assert_right_or_missing(self, found, said, ways):
        self.assertEqual(sum(found.values()), BY_A + BY_B)
        missing = found.pop((), 0)
        for way, blocks in found.items():
            self.assertIn((way, blocks), ways)
        if missing:
            self.assertRegex(said, r"[1-9]\d* blocks lack the stack of user space: the process had ended, or ran "
                             "another program")
            self.assertRegex(self.mleak("report", "--dump", self.path("x.mlk")).out, r"LOSSES.* users [1-9]")
        return missing

    def test_a_process_that_has_ended(self):
        found, said = self.record("child")
        self.assert_right_or_missing(found, said, {(("in_child", "make_both", *A), BY_A),
                                                   (("in_child", "make_both", *B), BY_B)})

    def test_a_process_that_runs_another_program(self):
        recorder = self.start("--comm", self.comm, "--user-stacks")
        self.tell("make")
        self.target.stdin.write(b"exec\n")
        self.assertEqual(read_line(self.target), "ready")
        said = self.stop(recorder)
        found = self.contexts(self.path("x.mlk"))
        self.assert_right_or_missing(found, said, {(("main", "make_both", *A), BY_A),
                                                   (("main", "make_both", *B), BY_B)})

    def test_more_than_there_is_room_for(self):
        recorder = self.start("--comm", self.comm, "--user-stacks")
        recorder.send_signal(signal.SIGSTOP)
        self.tell("many")
        recorder.send_signal(signal.SIGCONT)
        said = self.stop(recorder)
        found = self.contexts(self.path("x.mlk"))
        missing = found.pop((), 0)
        self.assertEqual(found, {("main", *A): MANY - missing})
        self.assertGreater(missing, 0)
        lost = int(re.search(r"(\d+) allocations lack the stack of user space: there was no room", said)[1])
        self.assertGreaterEqual(lost, missing)
        self.assertIn(" users %d" % lost, self.mleak("report", "--dump", self.path("x.mlk")).out)
