"""Programs in Python: functions, files and lines of each allocation are those of its own traceback."""

import collections
import gzip
import json
import os
import re
import subprocess
import sys

from backends import both_backends
from markstest import marked_stacks
from mleaktest import TESTS, needs_bpf, parse_folded
from pythontest import COUNT, PythonCase

PYTHON = "/usr/bin/python3.11"
PARTS = ["sample", "json", "xml", "sqlite3", "email", "generators", "threads", "foreign",
         "callbacks", "exceptions", "classes", "recursion"]


class Python311Case(PythonCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(PYTHON):
            self.skipTest("there is no " + PYTHON)


@both_backends
class PythonCommandTest(Python311Case):
    def test_each_mark_has_the_frames_of_its_traceback(self):
        os.chmod(self.dir, 0o777)
        for part in PARTS:
            with self.subTest(part=part):
                trace, _ = self.record(PYTHON, self.marks, part, str(COUNT), self.answer)
                self.assert_same(trace)

    def test_frames_stay_when_raw_stacks_are_dropped(self):
        os.chmod(self.dir, 0o777)
        trace, _ = self.record(PYTHON, self.marks, "sample", str(COUNT), self.answer)
        dropped = self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assert_same(dropped)

    def test_formats_tell_functions_of_python_from_others(self):
        os.chmod(self.dir, 0o777)
        trace, _ = self.record(PYTHON, self.marks, "sample", "100", self.answer)
        folded = parse_folded(self.mleak("report", "--format=folded", trace).out)
        marked = [stack for stack in folded if "mark [python]" in stack.frames]
        self.assertTrue(marked)
        for stack in marked:
            self.assertIn("main [python]", stack.frames)
            self.assertNotIn("mark", stack.frames)
        frames = json.loads(self.mleak("report", "--format=speedscope", trace).out)["shared"]["frames"]
        self.assertEqual({frame["name"] for frame in frames if frame.get("file") == self.marks and
                          not frame["name"].endswith(" [python]")}, set())
        with open(self.path("x.pb.gz"), "wb") as out:
            self.assertEqual(self.mleak("report", "--format=pprof", trace, stdout=out).status, 0)
        with gzip.open(self.path("x.pb.gz")) as profile:
            self.assertIn(b"mark [python]", profile.read())
        rows = self.mleak("report", "--by", "function", trace).out
        self.assertRegex(rows, r"(?m)  mark$")
        self.assertRegex(self.mleak("report", "--by", "file", trace).out, r"(?m)  %s$" % re.escape(self.marks))

    def test_files_are_left_out_on_request(self):
        os.chmod(self.dir, 0o777)
        trace, _ = self.record(PYTHON, self.marks, "sample", "100", self.answer, options=("--redact=names",))
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        found, told = collections.Counter(), collections.Counter()
        for frames, amount in marked_stacks(report, "[python]").items():
            self.assertEqual([frame[1:] for frame in frames if frame[1:] != ("", 0)], [])
            found[tuple(name for name, _, _ in frames)] += amount[0]
        for frames, amount in self.take_answers().items():
            told[tuple(name for name, _, _ in frames)] += amount[0]
        # without lines, what else these functions keep is not told apart
        self.assertEqual({names for names in told if found[names] < told[names]}, set())
        self.assertGreaterEqual(sum(told.values()), 100)
        self.assertNotRegex(self.mleak("report", "--dump", trace).out, r"(?m)^    file .*\.py")

    def test_second_reader_agrees(self):
        os.chmod(self.dir, 0o777)
        trace, _ = self.record(PYTHON, self.marks, "generators", "500", self.answer)
        ours = self.mleak("report", "--dump", trace).out
        theirs = subprocess.run([sys.executable, os.path.join(TESTS, "trace_reader.py"), trace],
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertIn(", frames ", ours)
        self.assertIn("    name numbers\n", ours)
        self.assertEqual(ours, theirs)

    def fake(self, kind):
        """Record a program that looks like an interpreter; the lines of the dump."""
        program = self.path("python-fake")
        subprocess.run(["gcc", "-O1", "-rdynamic", "-o", program,
                        os.path.join(TESTS, "live", "fake_python.c")], check=True)
        trace, _ = self.record(program, kind)
        dump = self.mleak("report", "--dump", trace).out.splitlines()
        allocs = [line for line in dump if line.startswith("  ALLOC") and ", size 47, " in line]
        self.assertEqual(len(allocs), 100)
        counts = [line.split()[1:] for line in dump if line.startswith("    counts")][-1]
        return allocs, [int(count) for count in counts]

    def test_chain_in_a_circle_is_cut_and_counted(self):
        allocs, counts = self.fake("circle")
        for line in allocs:
            self.assertEqual(len(line.split(", frames ")[1].split()), 128)
        self.assertGreaterEqual(counts[0], 100)
        self.assertGreaterEqual(counts[2], 100)

    def test_what_is_no_code_object_is_counted(self):
        allocs, counts = self.fake("type")
        for line in allocs:
            self.assertNotIn(", frames ", line)
        self.assertGreaterEqual(counts[1], 100)

    def test_no_frames_where_nothing_interprets(self):
        allocs, counts = self.fake("none")
        for line in allocs:
            self.assertNotIn(", frames ", line)
        self.assertEqual(counts[0], 0)
        self.assertGreaterEqual(counts[1], 100)


@needs_bpf
class PythonAttachTest(Python311Case):
    def test_attached_by_probes(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach(PYTHON, part)

    def test_attached_by_injected_code(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach(PYTHON, part, "--backend", "inject")
