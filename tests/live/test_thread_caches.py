"""glibc frees the blocks in a thread's cache once more when the thread ends: none of that is a free of a block
from before the recording, so a leak of such threads is not taken for the replacement of older blocks."""

import json
import os
import subprocess

from faulttest import FaultCase
from mleaktest import TESTS, needs_bpf, read_line

ROUNDS = 20


class ThreadCachesCase(FaultCase):
    def setUp(self):
        super().setUp()
        program = self.path("thread_caches")
        subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", program,
                        os.path.join(TESTS, "live", "thread_caches.c")], check=True)
        self.target = self.spawn([program], stdin=subprocess.PIPE)
        self.lost = int(read_line(self.target))

    def check(self, *options):
        mleak = self.attach(self.target.pid, *options)
        for _ in range(ROUNDS):
            self.target.stdin.write(b"?")
            now = int(read_line(self.target))
        mleak.terminate()
        self.assertEqual(self.finish(mleak).status, 0)
        result = self.mleak("report", "--format=json", self.path("x.mlk"))
        totals = json.loads(result.out)["totals"]
        self.assertEqual(now - self.lost, ROUNDS * 300)
        self.assertEqual(totals["outstanding"], {"blocks": now - self.lost, "bytes": (now - self.lost) * 503})
        # the last of a thread's cache, 7 blocks or, from glibc 2.42 on, 16; all else was given back before
        self.assertGreaterEqual(totals["freed_again"], ROUNDS * 100 * 7)
        self.assertLess(totals["unknown_frees"], ROUNDS)
        self.assertLess(totals["older"]["blocks"], ROUNDS)
        self.assertGreater(totals["net"]["blocks"], now - self.lost - ROUNDS)
        report = self.report(self.path("x.mlk"))
        self.assertNotRegex(report, r"(?m)^  replacing ")
        self.assertRegex(report, r"(?m)^  freed again +[\d,]+  \(libc emptied threads' caches, ")


@needs_bpf
class ProbesTest(ThreadCachesCase):
    def test_blocks_that_are_freed_again(self):
        self.check()


class InjectedTest(ThreadCachesCase):
    def test_blocks_that_are_freed_again(self):
        self.check("--backend", "inject")
