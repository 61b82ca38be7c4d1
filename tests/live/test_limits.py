"""Under limits on descriptors, files' sizes and memory, a recording works or says what is missing."""

import os
import re
import resource
import sys

from backends import both_backends
from mleaktest import MLEAK_FAST, Case, ends_in, parse_answers, parse_folded, parse_totals
from test_preload import PreloadCase

LIMITS = "ulimit -Sn; ulimit -Hn; ulimit -f; grep SigIgn /proc/self/status"


# How many MiB can be mapped.
MAP = b"""
import mmap
blocks = []
try:
    while True:
        blocks.append(mmap.mmap(-1, 1 << 20))
except OSError:
    print(len(blocks))
"""


def limited(which, soft, hard=None):
    return lambda: resource.setrlimit(which, (soft, soft if hard is None else hard))


@both_backends
class CommandLimitsTest(Case):
    program = MLEAK_FAST  # and more stack

    def test_the_command_has_its_own_limits(self):
        plain = self.finish(self.spawn(["sh", "-c", LIMITS],
                                       preexec_fn=limited(resource.RLIMIT_NOFILE, 60, 300)))
        result = self.mleak("record", "-o", "x.mlk", "--", "sh", "-c", LIMITS,
                            preexec_fn=limited(resource.RLIMIT_NOFILE, 60, 300))
        self.assertEqual((result.status, result.out), (0, plain.out))

    def test_a_small_stack_is_the_commands_alone(self):
        """libelf alone has 37 KiB on it."""
        for size in 32 << 10, 128 << 10:
            self.sample("single")
            small = dict(preexec_fn=limited(resource.RLIMIT_STACK, size))
            result = self.mleak("record", "-o", self.path("x.mlk"), "--", "sh", "-c",
                                "ulimit -s; exec ./single", **small)
            self.assertEqual((result.status, result.out.split()[0]), (0, str(size >> 10)), result.err)
            report = self.mleak("report", "--format=folded", self.path("x.mlk"), **small)
            self.assertEqual(report.status, 0, report.err)
            for answer in parse_answers(result.out):
                found = [s.bytes for s in parse_folded(report.out) if ends_in(s.frames, answer.path)]
                self.assertEqual(sum(found), answer.bytes)


class PreloadLimitsTest(PreloadCase):
    program = MLEAK_FAST  # address sanitizer takes more memory than is allowed here

    def run_with(self, which, limit, *options):
        return self.mleak("record", "--backend", "preload", "-o", "x.mlk", *options, "--", "sh", "-c",
                          LIMITS, preexec_fn=limited(which, limit), **self.as_user)

    def test_few_descriptors_are_enough_or_told_of(self):
        for most in range(4, 26):
            with self.subTest(most=most):
                result = self.run_with(resource.RLIMIT_NOFILE, most)
                if result.status:
                    self.assertIn(result.status, (125, 126))
                    self.assertRegex(result.err, "ulimit -n|Too many open files")
                    continue
                self.assertEqual(result.out.splitlines()[:2], [str(most)] * 2)
                report = self.mleak("report", self.path("x.mlk"))
                self.assertEqual(report.status, 0, report.err)
                # whether there are names of generated code could not be looked at
                self.assertRegex(report.err, r"\A(mleak: warning: names of .*\n)?\Z")
                self.assertGreater(parse_totals(report.out).allocations.blocks, 0)
            # What the recorder itself has open, and one for a moment.
            self.assertTrue(most < 14 or not result.status, most)

    def test_few_processes_are_enough_or_told_of(self):
        """The limit counts those of a user: so it is one who has no others."""
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.dir, 0o777)
        told = []
        for most in range(1, 12):
            result = self.mleak("record", "--backend", "preload", "-o", self.path("x%d.mlk" % most), "--", "true",
                                preexec_fn=limited(resource.RLIMIT_NPROC, most), user=54321)
            if result.status:
                told.append(most)
                self.assertIn(result.status, (125, 126))
                self.assert_one_message(result.err, "ulimit -u")
        self.assertGreater(len(told), 0)
        self.assertLess(len(told), 6)

    def test_a_limit_below_the_shared_memory_is_named(self):
        for which, option in ((resource.RLIMIT_FSIZE, "ulimit -f"), (resource.RLIMIT_AS, "ulimit -v")):
            with self.subTest(option):
                result = self.run_with(which, 200 << 20)
                self.assertEqual((result.status, result.out), (125, ""))
                self.assert_one_message(result.err, option)
                self.assertIn("--ring-size", result.err)

    def test_smaller_rings_stay_within_the_limit(self):
        result = self.run_with(resource.RLIMIT_FSIZE, 200 << 20, "--ring-size", "64K")
        self.assertEqual(result.status, 0, result.err)
        plain = self.finish(self.spawn(["sh", "-c", LIMITS]))
        self.assertEqual(result.out.splitlines()[3], plain.out.splitlines()[3])
        self.assertEqual(result.out.splitlines()[2], str(200 << 11))
        os.stat(self.path("x.mlk"))

    def mapped_beside(self, limit, *options):
        """What a program can map less than without mleak, in MiB, and what mleak says meanwhile."""
        self.write("map.py", MAP)
        command = [sys.executable, self.path("map.py")]
        within = {"preexec_fn": limited(resource.RLIMIT_AS, limit)}
        alone = self.finish(self.spawn(command, **within))
        result = self.mleak("record", "--backend", "preload", "-o", "x.mlk", *options, "--", *command, **within)
        self.assertEqual((alone.status, result.status), (0, 0), result.err)
        return int(alone.out) - int(result.out), result.err

    def test_addresses_that_the_command_lacks_are_told(self):
        less, said = self.mapped_beside(800 << 20)
        told = re.search(r"warning: of the 800 MiB of addresses .* \(ulimit -v\), (\d+) are taken", said)
        self.assertTrue(told, said)
        self.assertTrue(less - 8 < int(told[1]) <= less, (less, said))
        self.assertIn("--ring-size", said)

    def test_few_of_many_addresses_are_not_told(self):
        less, said = self.mapped_beside(800 << 20, "--ring-size", "64K")
        self.assertLess(less, 800 / 8)
        self.assertNotIn("ulimit", said)

    def test_a_child_without_memory_for_its_ring_is_lost_and_runs(self):
        script = "ulimit -v 40000; (for i in 1 2 3; do a=$a$i; done; echo $a); exit 3"
        result = self.mleak("record", "--backend", "preload", "--follow", "-o", "x.mlk", "--", "bash",
                            "-c", script, **self.as_user)
        self.assertEqual((result.status, result.out), (3, "123\n"), result.err)
        self.assertRegex(result.err, r"warning: .*lost")


del PreloadCase, Case
