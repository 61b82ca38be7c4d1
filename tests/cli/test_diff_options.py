"""`mleak diff`: what its help offers is what it takes, and nothing else."""

import json
import os
import re

from mleaktest import TESTS, Case

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
VALUES = {"FORMAT": "json", "N": "1", "PID": "24331", "TID|NAME": "cxx", "NAME": "cxx", "REGEX": "main",
          "BYTES": "1", "AGE": "1ms", "TIME": "0.2", "A,B": "0,0.2", "DIR": "/", "WHEN": "never",
          "WHAT": "leak", "WORDS": "held", "MASK": "0x7", "RANGE|NAME": "environ"}
OF_POINTERS = "verdict", "lost"  # of a trace that has some


class DiffOptionsTest(Case):
    def options(self, command):
        """Name and argument of each option of the help."""
        return dict(re.findall(r"^ +(?:-\w, )? *--([\w-]+)(?: ([A-Z|,]+))?",
                               self.mleak(command, "--help").out, re.M))

    def test_each_option_of_the_help_is_taken(self):
        suppressions = self.write("none.supp", b"")
        stacks = json.loads(self.report(TRACE, "--format=json"))["stacks"]
        values = dict(VALUES, ID=stacks[0]["id"], FILE=suppressions)
        offered = self.options("diff")
        self.assertGreater(len(offered), 20)
        offered.pop("debuginfod")  # it wants to be told of servers
        offered.pop("vmlinux")  # it wants traces of the kernel: see test_vmlinux.py
        for name, arg in offered.items():
            with self.subTest(option=name):
                value = values[arg] if arg else None
                if name == "max-memory":
                    value = "1G"
                words = ["--" + name] + ([value] if value else [])
                result = self.mleak("diff", *words, TRACE, TRACE)
                if name in OF_POINTERS:
                    self.assertEqual((result.status, result.out), (2, ""))
                    self.assert_one_message(result.err, naming="record it with --reach")
                elif name in ("start-pointers-only", "root"):
                    self.assertEqual((result.status, result.out), (2, ""))
                    self.assert_one_message(result.err, naming="give --lost or --verdict, too")
                else:
                    self.assertEqual((result.status, result.err), (0, ""))

    def test_each_other_option_of_a_report_is_refused(self):
        reports = self.options("report")
        others = set(reports) - set(self.options("diff"))
        self.assertTrue({"growth", "timeline", "by", "cost", "addr", "dump", "diff", "flat",
                         "inverted", "temporary"} <= others)
        for name in others:
            with self.subTest(option=name):
                # with its argument, for "--addr" alone is short for --addresses
                word = "--%s=1" % name if reports[name] else "--" + name
                result = self.mleak("diff", word, TRACE, TRACE)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming="mleak diff --help")

    def test_the_help_is_of_a_difference(self):
        text = self.mleak("diff", "--help").out
        self.assertIn("with the largest change", text)
        for word in "pprof", "heaptrack", "speedscope", "flat":
            self.assertNotIn(word, text)
            result = self.mleak("diff", "--format=" + word, TRACE, TRACE)
            self.assertEqual((result.status, result.out), (2, ""))

    def test_a_process_of_each_trace_is_for_a_difference_alone(self):
        result = self.mleak("diff", "--pid", "24331,24331", TRACE, TRACE)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertIn("blocks of process 24331 before and 24331 after", result.out)
        for args in (["report"], ["report", "--addr", "1"], ["report", "--by", "size"]):
            result = self.mleak(*args, "--pid", "24331,24331", TRACE)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="only for a difference")

    def test_what_is_no_pair_of_processes_is_refused(self):
        for pids in "1,", ",1", "1,2,3", "1,x", "0,1", "1,0", "1, 2", "1,-2", "1,4294967297", "":
            with self.subTest(pids=pids):
                result = self.mleak("diff", "--pid", pids, TRACE, TRACE)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming="'%s'" % pids)
                self.assertIn("--pid wants", result.err)

    def test_a_process_that_a_trace_lacks_is_told_with_those_that_it_has(self):
        other = os.path.join(TESTS, "golden", "v1.3-overrun.mlk")
        pid = re.search(r"(?m)^pid +(\d+)$", self.mleak("info", other).out)[1]
        for pids, path, lacks, has in (("24331", other, "24331", "overrun (%s)" % pid),
                                       (pid, TRACE, pid, "cxx (24331)"),
                                       ("24331,24331", other, "24331", "overrun (%s)" % pid),
                                       (pid + ",24331", TRACE, pid, "cxx (24331)")):
            with self.subTest(pids=pids):
                result = self.mleak("diff", "--pid", pids, TRACE, other)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, "no process %s in '%s', which has %s" % (
                    lacks, path, has))
        result = self.mleak("diff", "--pid", "24331," + pid, TRACE, other)
        self.assertEqual((result.status, result.err), (0, ""))
