"""Programs in PHP: functions, files and lines of each allocation are those of their own backtrace."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from backends import both_backends
from mleaktest import LONG, ROOT, TESTS, Case, needs_bpf, parse_folded, read_line, wait_until

COUNT = 1000
PARTS = ["sample", "generators", "callbacks", "exceptions", "magic", "files", "fibers", "recursion"]
PHP = shutil.which("php8.2")


def php_stacks(report):
    """Blocks and bytes by the PHP frames of a stack, the outermost first, from --format=json."""
    frames, found = report["frames"], collections.defaultdict(lambda: [0, 0])
    for stack in report["stacks"]:
        names = tuple((frames[i]["function"], frames[i]["file"], frames[i]["line"])
                      for i in reversed(stack["frames"]) if frames[i]["module"] == "[php]")
        found[names][0] += stack["outstanding"]["blocks"]
        found[names][1] += stack["outstanding"]["bytes"]
    return found


@unittest.skipUnless(PHP, "there is no php8.2")
class PhpCase(Case):
    def setUp(self):
        super().setUp()
        self.marks = shutil.copy(os.path.join(ROOT, "samples", "php_marks.php"), self.dir)
        self.answer = self.path("answer.json")
        self.env = {**os.environ, "USE_ZEND_ALLOC": "0"}
        os.chmod(self.dir, 0o777)

    def record_part(self, part, count=COUNT, options=()):
        trace = self.path(part + ".mlk")
        result = self.mleak("record", "-o", trace, *options, "--", PHP, self.marks, part, str(count), self.answer,
                            env=self.env)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)  # as the command ended
        return trace

    def take_answer(self):
        """What was told: {frames: [blocks, bytes]}."""
        with open(self.answer, encoding="utf-8") as file:
            told = {tuple(map(tuple, frames)): [blocks, size] for frames, blocks, size in json.load(file)}
        os.unlink(self.answer)
        return told

    def assert_same(self, trace, least=COUNT):
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        found, told = php_stacks(report), self.take_answer()
        wrong = [(frames[-4:], amount, found[frames]) for frames, amount in told.items() if found[frames] != amount]
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(sum(blocks for blocks, _ in told.values()), least)
        return report


@both_backends
class PhpCommandTest(PhpCase):
    def test_each_mark_has_the_frames_of_its_backtrace(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.assert_same(self.record_part(part))

    def test_frames_stay_when_raw_stacks_are_dropped(self):
        trace, dropped = self.record_part("generators", 500), self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assert_same(dropped, 500)

    def test_second_reader_agrees(self):
        trace = self.record_part("magic", 300)
        ours = self.mleak("report", "--dump", trace).out
        theirs = subprocess.run([sys.executable, os.path.join(TESTS, "trace_reader.py"), trace],
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertIn(", language 2, ", ours)
        self.assertEqual(ours, theirs)

    def test_formats_tell_functions_of_php_from_others(self):
        trace = self.record_part("sample", 100)
        folded = parse_folded(self.mleak("report", "--format=folded", trace).out)
        marked = [stack for stack in folded if "Marks\\mark [php]" in stack.frames]
        self.assertTrue(marked)
        for stack in marked:
            self.assertIn("Marks\\Tree::__construct [php]", " ".join(s for t in marked for s in t.frames))
            self.assertIn("{main} [php]", stack.frames)
        self.assertRegex(self.mleak("info", trace).out,
                         r"(?m)^interpreter +\d+ PHP 8\.2\.\d+: [\d,]+ allocations with frames, ")
        self.assertRegex(self.mleak("report", "--by", "function", trace).out, r"(?m)  Marks\\Tree::walk$")

    def test_more_callers_than_are_recorded_are_cut_and_counted(self):
        trace = self.record_part("deep", 50)
        self.assertRegex(self.mleak("info", trace).out, r"[\d,]+ allocations with too many frames")
        frames = [line.split(", frames ")[1].split() for line in self.mleak("report", "--dump", trace).out.splitlines()
                  if ", frames " in line]
        # with those of C between them there are 128
        self.assertTrue(80 < max(map(len, frames)) <= 128, max(map(len, frames)))

    def test_files_are_left_out_on_request(self):
        trace = self.record_part("sample", 100, ("--redact=names",))
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        names = collections.Counter()
        for frames, amount in php_stacks(report).items():
            self.assertEqual([frame[1:] for frame in frames if frame[1:] != ("", 0)], [])
            names[frames and frames[-1][0]] += amount[0]
        self.assertGreaterEqual(names["Marks\\mark"], 100)
        self.assertNotRegex(self.mleak("report", "--dump", trace).out, r"(?m)^    file .*\.php")


@needs_bpf
class PhpAttachTest(PhpCase):
    def attach_part(self, part, *options):
        """Record from the moment when the program waits."""
        target = self.spawn([PHP, self.marks, part, str(COUNT), self.answer, "wait"], stdin=subprocess.PIPE,
                            env=self.env)
        self.assertEqual(read_line(target), "ready")
        trace = self.path(part + ".mlk")
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace) or mleak.poll() is not None, "mleak does not attach")
        target.stdin.write(b"\n")
        target.wait(LONG)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_same(trace)
        os.unlink(trace)

    def test_attached_by_probes(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part)

    def test_attached_by_injected_code(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, "--backend", "inject")
