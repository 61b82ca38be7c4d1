"""Programs in PHP: functions, files and lines of each allocation are those of their own backtrace."""

import shutil
import signal
import unittest

from backends import both_backends
from markstest import MarksCase
from mleaktest import needs_bpf, parse_folded

COUNT = 300
PARTS = ["sample", "generators", "callbacks", "exceptions", "magic", "files", "fibers", "recursion"]
PHP = shutil.which("php8.2")


@unittest.skipUnless(PHP, "there is no php8.2")
class PhpCase(MarksCase):
    interpreter, module, sample = PHP, "[php]", "php_marks.php"
    variables = {"USE_ZEND_ALLOC": "0"}
    status = -signal.SIGKILL


@both_backends
class PhpCommandTest(PhpCase):
    def test_each_mark_has_the_frames_of_its_backtrace(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.assert_same(self.record_part(part, COUNT), COUNT)

    def test_frames_stay_when_raw_stacks_are_dropped(self):
        trace, dropped = self.record_part("generators", 500), self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assert_same(dropped, 500)

    def test_second_reader_agrees(self):
        self.assertIn(", language 2, ", self.assert_second_reader_agrees(self.record_part("magic", 300)))

    def test_formats_tell_functions_of_php_from_others(self):
        trace = self.record_part("sample", 100)
        folded = parse_folded(self.mleak("report", "--format=folded", trace).out)
        marked = [stack for stack in folded if "Marks\\mark [php]" in stack.frames]
        self.assertTrue([stack for stack in marked if "Marks\\Tree::__construct [php]" in stack.frames])
        for stack in marked:
            self.assertIn("{main} [php]", stack.frames)
        self.assertRegex(self.mleak("info", trace).out,
                         r"(?m)^interpreter +\d+ PHP 8\.2\.\d+: [\d,]+ allocations with frames, ")
        self.assertRegex(self.mleak("report", "--by", "function", trace).out, r"(?m)  Marks\\Tree::walk$")

    def test_more_callers_than_are_recorded_are_cut_and_counted(self):
        trace = self.record_part("deep", 50)
        self.assertRegex(self.mleak("info", trace).out, r"[\d,]+ allocations with too many frames")
        # with those of C between them there are 128
        self.assertIn(self.most_frames(trace), range(80, 129))

    def test_files_are_left_out_on_request(self):
        self.assert_no_files(self.record_part("sample", 100, ("--redact=names",)), "Marks\\mark", 100)


@needs_bpf
class PhpAttachTest(PhpCase):
    def test_attached_by_probes(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT)

    def test_attached_by_injected_code(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT, "--backend", "inject")
