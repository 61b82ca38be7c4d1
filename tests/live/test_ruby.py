"""Programs in Ruby: methods, files and lines of each allocation are those of their own backtrace."""

import json
import shutil
import unittest

from markstest import MARKS, MarksCase, marked_stacks
from mleaktest import needs_bpf, parse_folded

COUNT = MARKS or 300
PARTS = ["sample", "blocks", "exceptions", "missing", "files", "fibers", "threads", "recursion"]
RUBY = shutil.which("ruby3.1")


@unittest.skipUnless(RUBY, "there is no ruby3.1")
class RubyCase(MarksCase):
    interpreter, module, sample = RUBY, "[ruby]", "ruby_marks.rb"
    variables = {"RUBY_GC_HEAP_INIT_SLOTS": str(500000 + 300 * MARKS), "RUBYOPT": "--disable-gems"}


@needs_bpf
class RubyTest(RubyCase):
    def test_each_mark_has_the_frames_of_its_backtrace(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.assert_same(self.record_part(part, COUNT), COUNT)

    def test_started_by_another_program(self):
        self.assert_same_below_a_shell("sample", 100)

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

    def test_methods_that_yjit_compiled_have_their_place(self):
        self.env["RUBYOPT"] += " --yjit --yjit-call-threshold=2"
        trace = self.record_part("all", COUNT)
        found = marked_stacks(json.loads(self.mleak("report", "--format=json", trace).out), self.module)
        told = self.take_answers()
        # what YJIT allocates while it compiles a method has the method's callers, too
        self.assertEqual([frames for frames, amount in told.items() if found[frames] < amount], [])
        self.assertGreaterEqual(sum(blocks for blocks, _ in told.values()), COUNT)

    def test_attached(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT)

    def test_code_within_the_process_does_not_read_what_moves(self):
        trace = self.record_part("sample", 50, ("--backend", "preload"))
        report = self.mleak("report", trace)
        self.assertRegex(report.err, r"lack the functions of Ruby 3\.1\.\d+: only eBPF reads them, as its objects move\n")
        self.assertRegex(report.out, r"(?m)  rb_vm_exec")
        self.assertNotIn(", frames ", self.mleak("report", "--dump", trace).out)
        self.assertRegex(self.mleak("info", trace).out, "without its functions, as only eBPF reads them")
