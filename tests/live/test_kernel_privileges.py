"""What a recorder of the kernel's memory may do while it records, and what it says when the kernel fails it."""

import os
import re
import resource
import shutil
import subprocess
import unittest

from kerneltest import OPEN, KernelCase
from mleaktest import wait_until

CAP_DAC_READ_SEARCH, CAP_BPF = 2, 39

FAILED = 125


def statuses(pid):
    """What /proc says of each thread of @pid."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as status:
            found.append(dict(re.findall(r"(?m)^(\w+):\s*(.*)$", status.read())))
    return found


class KernelPrivilegesTest(KernelCase):
    def has_given_up(self, pid):
        allowed = 1 << CAP_DAC_READ_SEARCH | 1 << CAP_BPF
        return all(not int(status[which], 16) & ~allowed for status in statuses(pid)
                   for which in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"))

    def test_it_gives_them_up_and_still_names_all(self):
        group = self.make_cgroup(self.comm)
        self.move_to(group)
        recorder = self.start("--comm", self.comm)
        wait_until(lambda: self.has_given_up(recorder.pid), "capabilities are kept")
        self.assertGreater(len(statuses(recorder.pid)), 1)
        self.assertEqual({status["NoNewPrivs"] for status in statuses(recorder.pid)}, {"1"})
        self.tell("make")
        self.stop(recorder)
        trace = self.path("x.mlk")
        self.assertEqual(self.groups(trace, "cache")["filp"], OPEN)
        self.assertEqual(list(self.groups(trace, "cgroup")), ["/" + os.path.basename(group)])
        self.assertEqual(list(self.groups(trace, "process")),
                         ["%d %s" % (self.target.pid, self.comm)])
        self.assertIn("do_syscall_64", self.shown(trace, "--folded"))
        with open("/sys/kernel/notes", "rb") as notes:
            build_id = re.search(rb"GNU\0(.{20})", notes.read(), re.S)[1].hex()
        self.assertRegex(self.mleak("info", trace).out, r"(?m)^module +%s .*\[kernel\]$" % build_id)

class KernelFailureTest(KernelCase):
    """What goes wrong while it records is one sentence, which says what it was."""

    def failed(self, recorder, naming):
        result = self.finish(recorder)
        self.assertEqual((result.status, result.out), (FAILED, ""), result.err)
        self.assert_one_message(result.err, naming=naming)
        return self.shown(self.path("x.mlk"), "--by", "cache", "--format=csv")

    @unittest.skipIf(not shutil.which("strace"), "strace is not installed")
    def test_maps_that_cannot_be_read(self):
        # The sanitizer's search for leaks does not work in a process that is traced.
        recorder = self.start("--comm", self.comm, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        self.tell("make")
        self.wait_for_files(self.path("x.mlk"))
        tracer = self.spawn(["strace", "-f", "-qq", "-e", "trace=bpf", "-e", "inject=bpf:error=EIO",
                             "-o", "/dev/null", "-p", str(recorder.pid)], stderr=subprocess.DEVNULL)
        said = self.failed(recorder, "cannot read what the eBPF programs recorded of the kernel's "
                                     "memory: Input/output error")
        self.finish(tracer)
        # What was recorded until then is there.
        self.assertIn(',%d,"filp"' % OPEN, said)

    def test_a_trace_that_cannot_be_written(self):
        recorder = self.start("--comm", self.comm)
        size = os.path.getsize(self.path("x.mlk"))
        resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (size, size))
        self.tell("make")
        self.failed(recorder, "the trace 'x.mlk' ends early: File too large")


del KernelCase
