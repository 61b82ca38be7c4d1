"""A trace is enough: the report needs neither the programs recorded nor privileges."""

import errno
import os
import shutil

from backends import both_backends
from mleaktest import AS_NOBODY, Case, parse_totals

# Where no other user can be had, the same one, who may do no more than others.
ANOTHER = AS_NOBODY if os.geteuid() == 0 else {}


@both_backends
class OfflineTest(Case):
    def record_sample(self, name):
        trace, _ = self.record(self.sample(name))
        os.chmod(trace, 0o644)  # so that nobody may read it; mleak makes it 0600
        return trace

    def check(self, name):
        trace = self.record_sample(name)
        formats = [(), ("--format=folded",), ("--inverted",), ("--addresses",)]
        before = [self.report(trace, *options) for options in formats]
        os.unlink(self.path(name))
        os.unlink(self.path("plugin.so"))
        after = [self.report(trace, *options, cwd="/", **ANOTHER) for options in formats]
        self.assertEqual(before, after)

    def test_program_gone(self):
        self.check("single")

    def test_cxx_program_gone(self):
        self.check("cxx")

    def test_library_gone(self):
        self.check("dlopen")

    def test_debug_files_gone_too(self):
        trace = self.record_sample("dlopen")
        before = self.report(trace, "--format=folded", "--addresses")
        for name in ("dlopen", "plugin.so"):
            os.unlink(self.path(name))
            os.unlink(self.path(name + ".debug"))
        after = self.report(trace, "--format=folded", "--addresses", cwd="/", **ANOTHER)
        self.assertEqual(before, after)
        totals = parse_totals(self.report(trace))
        self.assert_whole(totals)

    def test_report_twice_is_the_same(self):
        trace = self.record_sample("cxx")
        self.assertEqual(self.report(trace), self.report(trace))
        folded = self.report(trace, "--format=folded")
        self.assertEqual(folded.splitlines(), sorted(folded.splitlines(), key=os.fsencode))

    def test_trace_that_may_not_be_read(self):
        trace = self.record_sample("single")
        shutil.copy(trace, self.path("ours.mlk"))
        os.chmod(self.path("ours.mlk"), 0)
        result = self.mleak("report", "ours.mlk", **ANOTHER)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="ours.mlk")

    def test_full_disk_under_the_report(self):
        trace = self.record_sample("single")
        # a page is longer than what is kept for one write
        for form in "tree", "html":
            with open("/dev/full", "wb") as full:
                result = self.mleak("report", "--format=" + form, trace, stdout=full)
            self.assertEqual(result.status, 2)
            self.assert_one_message(result.err, naming=os.strerror(errno.ENOSPC))
