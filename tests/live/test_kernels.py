"""The kernel of Debian 12, booted: the verifier takes the programs, and a launch, an attachment and the
preloaded library, on a machine that does not trust the time stamp counter, report what the samples count.

The long form is `make check-kernels`."""

import os
import re
import subprocess
import sys

from mleaktest import BUILD, MLEAK_FAST, TESTS, Case

NOT_HERE = 77


class KernelsTest(Case):
    def test_debian_12(self):
        done = subprocess.run([sys.executable, os.path.join(TESTS, "kernels", "check.py"), "--short",
                               "--build", BUILD, "--mleak", MLEAK_FAST, "6.1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == NOT_HERE and os.environ.get("MLEAK_REQUIRE_KERNELS") != "1":
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        passed = re.search(r"(?m)^(\d+) passed, 0 failed, 0 skipped$", done.stdout)
        self.assertTrue(passed and int(passed[1]) >= 5, done.stdout)
