"""What a recording by the preloaded library has in common with others, and what it refuses."""

import contextlib
import os
import re
import subprocess
import unittest

from mleaktest import read_line
from test_preload import PreloadCase

PACED = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile block;
int main(void)
{
	block = malloc(211);
	usleep(200000);
	free(block);
	usleep(200000);
	block = malloc(223);
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"""

CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN = 39, 38, 21


class SessionTest(PreloadCase):
    def test_a_free_has_the_time_of_the_free(self):
        trace, _ = self.record(self.compile("paced", PACED), stdin=open(os.devnull))
        dump = self.report(trace, "--dump")
        first, at, block = re.search(r"ALLOC .*time (\d+), addr (0x[0-9a-f]+), size (211),", dump).groups()
        freed = re.search(r"FREE .*time (\d+), addr %s$" % at, dump, re.M).group(1)
        second = re.search(r"ALLOC .*time (\d+), addr 0x[0-9a-f]+, size 223,", dump).group(1)
        # The program has slept so long between them, at least; the clock may be a little off.
        self.assertGreater(int(freed) - int(first), 190000000)
        self.assertGreater(int(second) - int(freed), 190000000)

    def test_a_trace_says_that_the_process_ended(self):
        trace, _ = self.record(self.compile("paced", PACED), stdin=open(os.devnull))
        dump = self.report(trace, "--dump")
        pid = re.search(r"tgid (\d+)", dump).group(1)
        self.assertEqual(re.findall(r"EXIT .*tgid (\d+)", dump), [pid])

    @unittest.skipIf(os.geteuid() != 0, "needs root to have capabilities")
    def test_the_recorder_gives_bpfs_capabilities_up(self):
        mleak = self.start_mleak("record", "--backend", "preload", "-o", self.path("x.mlk"), "--",
                                 self.compile("paced", PACED), stdin=subprocess.PIPE)
        read_line(mleak)
        tasks = "/proc/%d/task" % mleak.pid
        left = {}
        for tid in os.listdir(tasks):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                with open("%s/%s/status" % (tasks, tid)) as status:
                    left[tid] = int(re.search(r"CapPrm:\s*([0-9a-f]+)", status.read()).group(1), 16)
        self.assertGreater(len(left), 1)
        for caps in left.values():
            self.assertEqual(caps & (1 << CAP_BPF | 1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN), 0)
        os.kill(mleak.pid, 15)
        self.finish(mleak)


class OptionsTest(PreloadCase):
    def refused(self, *args, backend="preload"):
        result = self.mleak("record", "--backend", backend, "-o", "x.mlk", *args, **self.as_user)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        return result.err

    def test_several_processes(self):
        self.assertIn("attach", self.refused("-p", str(os.getpid()), "-p", str(os.getppid())))

    def test_threads_by_their_numbers(self):
        self.assertIn("--tid", self.refused("--tid", "1", "--", "true"))

    def test_what_only_probes_do(self):
        for option in (["-O", "/bin/true"], ["--prefix", "je_"], ["--uprobes", "perf"],
                       ["--dry-run"]):
            self.assertIn(option[0], self.refused(*option, "--", "true"))

    def test_operators_that_are_not_probed(self):
        self.assertIn("--no-operators", self.refused("--no-operators", "--", "true"))

    def test_rings_that_are_too_large_for_each_thread(self):
        self.assertIn("64M", self.refused("--ring-size", "128M", "--", "true"))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_what_only_probes_do_is_not_left_out_where_there_are_none(self):
        for option, named in ((["-O", "/etc/passwd"], "-O needs eBPF"),
                              (["--prefix", "zz_"], "--prefix needs eBPF"),
                              (["--uprobes", "perf"], "CAP_SYS_ADMIN"),
                              (["--no-operators"], "--no-operators needs eBPF"),
                              (["--ring-size", "1G"], "above 64M needs eBPF")):
            with self.subTest(option):
                self.assertIn(named, self.refused(*option, "--", "true", backend="auto"))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_a_dry_run_says_that_there_would_be_no_probes(self):
        result = self.mleak("record", "--dry-run", "--", "true", **self.as_user)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, "preloaded library")

    def test_what_a_full_ring_does_is_the_librarys(self):
        for command in (["--backend", "bpf", "--", "true"], ["-p", str(os.getpid())]):
            result = self.mleak("record", "--on-full", "drop", *command)
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, "--on-full")
        self.options = ("--on-full", "drop")
        self.as_user = {}
        trace, _ = self.record("true")
        self.assertRegex(self.report(trace, "--dump"), r"(?m)backend\W+preload")

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_children_without_privileges(self):
        self.options = ("--backend", "auto", "--follow")
        trace, _ = self.record("sh", "-c", "true | cat")
        self.assertRegex(self.report(trace, "--dump"), r"(?m)backend\W+preload")
        self.assertRegex(self.report(trace, "--per-process"), r"(?m)^  process \d+ cat: ")


del PreloadCase
