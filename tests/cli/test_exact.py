"""The unwinder finds the frames that libgcc's found inside of the programs, in stacks saved there."""

import os
import shutil
import subprocess
import sys
import time

from mleaktest import LONG, BUILD, TESTS, Case, read_line

sys.path.insert(0, os.path.join(TESTS, "exact"))
from exact import Oracle
from programs import STRESS

WEEK_SECONDS = 7 * 24 * 3600


class ExactTest(Case):
    """The short form; `make acceptance` runs the long one."""

    def setUp(self):
        super().setUp()
        self.oracle = Oracle(BUILD, long=False)

    def check(self, name, least_frames):
        if name not in STRESS and name != "cc1plus" and not shutil.which(name):
            self.skipTest("no program " + name)
        counts, differences = self.oracle.run(name)
        self.assertEqual(differences, [])
        self.assertEqual(counts["equal"], counts["frames"])
        self.assertEqual(counts["different"], 0)
        self.assertGreater(counts["frames"], least_frames)
        return counts

    def test_python(self):
        self.check("python3", 5000)

    def test_perl(self):
        self.check("perl", 2000)

    def test_git(self):
        self.check("git", 2000)

    def test_sqlite(self):
        self.check("sqlite3", 1500)

    def test_bash(self):
        self.check("bash", 5000)

    def test_compiler(self):
        self.check("cc1plus", 3000)

    def test_stress(self):
        for name in STRESS:
            with self.subTest(name):
                counts = self.check(name, 30000)
                # On stacks of their own are the handlers' 200 ticks and some more; their bytes, and
                # those in longjmp, end before the interrupted stack does.
                self.assertLess(counts["truncated"], 300)
                # Of code that glibc starts without call frame information: coroutines, ld.so.
                self.assertLess(counts["no_cfi"], 10)


class LaterTest(Case):
    """When stacks are unwound does not matter, nor whether their program is still there."""

    PROGRAM = "import json, re, sys; re.compile('(a|b)*c'); json.dumps(list(range(999)));" \
              "print('ready', flush=True); sys.stdin.read()"

    def start(self, oracle):
        samples = self.path("samples")
        os.mkdir(samples)
        env = dict(os.environ, LD_PRELOAD=os.path.join(oracle.tools, "sampler.so"),
                   EXACT_DIR=samples, EXACT_LIMIT="500", PYTHONMALLOC="malloc")
        process = self.spawn([sys.executable, "-c", self.PROGRAM], env=env, stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        return process, samples

    def test_frames_after_500_ms_and_after_a_week_are_those_found_at_once(self):
        oracle = Oracle(BUILD, long=False)
        process, samples = self.start(oracle)
        counts, at_once, differences = oracle.compare(samples)
        self.assertIsNone(process.poll(), "the program ended before its stacks were unwound")
        self.assertEqual((counts["different"], differences), (0, []))
        self.assertGreater(counts["stacks"], 100)
        time.sleep(0.5)
        self.assertEqual(oracle.compare(samples)[1], at_once)

        process.stdin.close()
        process.wait(LONG)
        old = self.path("old")
        shutil.copytree(samples, old)
        shutil.rmtree(samples)
        before = time.time() - WEEK_SECONDS
        for name in os.listdir(old):
            os.utime(os.path.join(old, name), (before, before))
        self.assertEqual(oracle.compare(old), (counts, at_once, []))
