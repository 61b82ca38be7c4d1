"""The kernel's own memory, on kernels that are not the builder's: what a program holds is outstanding."""

import json
import os
import signal
import subprocess
import unittest

from guesttest import GuestCase, is_locked_down, kernel_at_least
from mleaktest import MLEAK, read_line, wait_until

HELD = 223
PROGRAM = """import os, sys
open('/proc/self/comm', 'w').write('holds')
fds = [os.eventfd(0) for _ in range(%d)]
print('holding', flush=True)
sys.stdin.read()
""" % HELD


class KernelMemoryTest(GuestCase):
    def record(self):
        """A recording in which a program comes to hold eventfds: what the recorder says, and its status."""
        self.trace = os.path.join(self.dir, "kernel.mlk")
        recorder = subprocess.Popen([MLEAK, "record", "--kernel", "--comm", "holds", "--cache", "kmalloc-64",
                                     "-o", self.trace], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: os.path.exists(self.trace) or recorder.poll() is not None, "the recording began")
        with subprocess.Popen(["python3", "-c", PROGRAM], stdin=subprocess.PIPE, bufsize=0,
                              stdout=subprocess.PIPE) as target:
            read_line(target)
            if recorder.poll() is None:
                recorder.send_signal(signal.SIGINT)
            said = recorder.communicate()[1]
            target.stdin.close()
        return said, recorder.returncode

    @unittest.skipIf(is_locked_down(), "locked down")
    @kernel_at_least(6, 1)
    def test_eventfds(self):
        """Each eventfd is one eventfd_ctx, which kmalloc takes from its cache of 64 bytes."""
        said, status = self.record()
        self.assertEqual(status, 0, said)
        report = json.loads(subprocess.run([MLEAK, "report", "--format=json", "--function", "do_eventfd", self.trace],
                                           check=True, stdout=subprocess.PIPE).stdout)
        names = [frame["function"] for frame in report["frames"]]
        held = sum(stack["outstanding"]["blocks"] for stack in report["stacks"]
                   if not any("expand_files" in names[at] for at in stack["frames"]))
        self.assertEqual(held, HELD)

    @unittest.skipUnless(is_locked_down(), "not locked down")
    def test_a_kernel_that_is_locked_down_is_named(self):
        said, status = self.record()
        self.assertEqual(status, 125)
        self.assertIn("the kernel is locked down", said)
        self.assertEqual(said.count("\n"), 1)
        self.assertFalse(os.path.exists(self.trace))


if __name__ == "__main__":
    unittest.main()
