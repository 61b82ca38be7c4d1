"""The verifier takes all BPF programs, and the work it has with them is far from what it allows."""

import os
import re
import subprocess

from guesttest import GuestCase, is_locked_down, kernel_at_least
from mleaktest import BUILD

PROCESSED_MOST = 200000  # a fifth of the kernel's limit, BPF_COMPLEXITY_LIMIT_INSNS
ROW = re.compile(r"^verified (\S+) (\S+) instructions=(\d+) processed=(\d+) states=\d+$")


class VerifierTest(GuestCase):
    @kernel_at_least(6, 1)
    def test_all_programs_are_taken(self):
        if is_locked_down():
            self.skipTest("the machine is locked down")
        done = subprocess.run([os.path.join(BUILD, "tests", "guest", "verify")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with open(os.environ["MLEAK_GUEST_TABLE"], "w") as table:
            table.write(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr[-6000:])
        rows = [ROW.match(line) for line in done.stdout.splitlines()]
        self.assertGreater(len(rows), 10)
        self.assertNotIn(None, rows, done.stdout)
        for row in rows:
            self.assertGreater(int(row[4]), 0, row[0])
            self.assertLess(int(row[4]), PROCESSED_MOST, row[0])
