"""Programs in Ruby: methods, files and lines of each allocation are those of their own backtrace."""

import shutil
import unittest

from backends import both_backends
from markstest import MARKS, MarksCase
from mleaktest import needs_bpf, parse_folded

COUNT = MARKS or 300
PARTS = ["sample", "blocks", "exceptions", "missing", "files", "fibers", "threads", "recursion"]
RUBY = shutil.which("ruby3.1")


@unittest.skipUnless(RUBY, "there is no ruby3.1")
class RubyCase(MarksCase):
    interpreter, module, sample = RUBY, "[ruby]", "ruby_marks.rb"
    variables = {"RUBY_GC_HEAP_INIT_SLOTS": str(500000 + 300 * MARKS), "RUBYOPT": "--disable-gems"}


@both_backends
class RubyCommandTest(RubyCase):
    def test_each_mark_has_the_frames_of_its_backtrace(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.assert_same(self.record_part(part, COUNT), COUNT)

    def test_frames_stay_when_raw_stacks_are_dropped(self):
        trace, dropped = self.record_part("exceptions", 500), self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assert_same(dropped, 500)

    def test_second_reader_agrees(self):
        self.assertIn(", language 3, ", self.assert_second_reader_agrees(
            self.record_part("missing", 300, ("--min-size", "500"))))

    def test_formats_tell_methods_of_ruby_from_others(self):
        trace = self.record_part("sample", 100)
        folded = parse_folded(self.mleak("report", "--format=folded", trace).out)
        marked = [stack for stack in folded if "mark [ruby]" in stack.frames]
        self.assertTrue([stack for stack in marked if "block in initialize [ruby]" in stack.frames])
        for stack in marked:
            self.assertIn("<main> [ruby]", stack.frames)
        self.assertRegex(self.mleak("info", trace).out,
                         r"(?m)^interpreter +\d+ Ruby 3\.1\.\d+: [\d,]+ allocations with frames, ")
        self.assertRegex(self.mleak("report", "--by", "function", trace).out, r"(?m)  block in walk$")

    def test_more_callers_than_are_recorded_are_cut_and_counted(self):
        trace = self.record_part("deep", 50)
        self.assertRegex(self.mleak("info", trace).out, r"[\d,]+ allocations with too many frames")
        # with those of C between them there are 128
        self.assertIn(self.most_frames(trace), range(80, 129))

    def test_files_are_left_out_on_request(self):
        self.assert_no_files(self.record_part("sample", 100, ("--redact=names",)), "mark", 100)


@needs_bpf
class RubyAttachTest(RubyCase):
    def test_attached_by_probes(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT)

    def test_attached_by_injected_code(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT, "--backend", "inject")
