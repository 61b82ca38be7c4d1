"""A recorder that is taken over can write nothing but its trace, though it is root's: gdb has each of its
threads try."""

import ctypes
import os
import re
import shutil
import subprocess

from faulttest import FaultCase
from mleaktest import LONG, needs_bpf, wait_until

O_WRONLY, O_CREAT = 1, 0o100


def landlock_version():
    """Of the kernel's interface; less than 1: it has none."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@needs_bpf
class SandboxTest(FaultCase):
    def setUp(self):
        super().setUp()
        if landlock_version() < 1:
            self.skipTest("this kernel has no Landlock")
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed")

    def tries(self, pid, *calls):
        """For each of @calls, of functions of the C library, what it gives in the threads of @pid."""
        commands = [part for call in calls
                    for part in ("-ex", "echo :next\\n", "-ex", "thread apply all print " + call)]
        result = subprocess.run(
            ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "set confirm off", *commands],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=3 * LONG)
        # gdb 13 has no room for the registers of processors with AMX, and calls nothing there.
        if "Couldn't write extended state status" in result.stdout:
            self.skipTest("gdb cannot write the registers of this processor")
        threads = len(os.listdir("/proc/%d/task" % pid))
        found = [[int(n) for n in re.findall(r"^\$\d+ = (-?\d+)$", part, re.M)]
                 for part in result.stdout.split(":next\n")[1:]]
        self.assertEqual([len(part) for part in found], [threads] * len(calls), result.stdout)
        return found

    @staticmethod
    def opening(path, flags):
        return '((int (*)(const char *, int, int))open)("%s", %d, 0600)' % (path, flags)

    def without_capabilities(self, pid):
        """Have all threads of @pid given up what they had, as the last thing?"""
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid)) as status:
                if not re.search(r"^CapPrm:\s*0+$", status.read(), re.M):
                    return False
        return True

    def check(self, mleak, target, function="leak_early"):
        wait_until(lambda: self.without_capabilities(mleak.pid), "capabilities are kept")
        old, new = self.write("old", b"x"), self.path("new")
        created, written, read, killed = self.tries(
            mleak.pid, self.opening(new, O_WRONLY | O_CREAT), self.opening(old, O_WRONLY),
            self.opening(old, 0), "((int (*)(int, int))kill)(%d, 0)" % os.getpid())
        self.assertEqual(set(created + written), {-1})
        self.assertFalse(os.path.exists(new))
        self.assertNotIn(-1, read)
        if landlock_version() >= 6:
            self.assertEqual(set(killed), {-1})
        truth = self.tell(target, "early", 23)
        target.stdin.close()
        target.stdin = None
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_accounted(truth)
        self.assertIn(function, self.report(self.path("x.mlk")))

    def test_recorder_of_a_process(self):
        target = self.start(self.compile("target"))
        self.check(self.attach(target.pid), target)

    def test_recorder_that_follows_children(self):
        target = self.start(self.compile("target"))
        self.check(self.attach(target.pid, "--follow"), target)

    def test_recorder_of_a_command(self):
        mleak = self.start(self.program, "record", "--backend", "preload", "-o",
                           self.path("x.mlk"), "--", self.compile("target"))
        self.check(mleak, mleak)
