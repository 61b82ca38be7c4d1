"""Programs that Node.js runs: the stacks of what they leak go through code that it compiles."""

import shutil
import unittest

from backends import both_backends
from mleaktest import Case, cut_stacks, parse_folded, parse_totals

BLOCKS, SIZE = 2300, 47047  # no other block of Node's own has this size

# Buffers that are kept by functions that run often enough to be compiled.
PROGRAM = b"""'use strict';
const kept = [];
function leakHere(i) { kept.push(Buffer.allocUnsafeSlow(%d)); return i; }
function handleRequest(i) { return leakHere(i) + 1; }
function serve() { let n = 0; for (let i = 0; i < %d; i++) n = handleRequest(i); return n; }
console.log(serve());
process.reallyExit(0);
""" % (SIZE, BLOCKS)


ONLY = ("--min-size", str(SIZE), "--max-block", str(SIZE))  # of the buffers, and nothing else


@both_backends
@unittest.skipUnless(shutil.which("node"), "there is no node")
class NodeTest(Case):
    def record_node(self, *options, only=ONLY):
        program = self.write("leaks.js", PROGRAM)
        trace, out = self.record("node", *options, program, options=("--ring-size", "64M", *only), cwd=self.dir)
        self.assertIn("%d\n" % BLOCKS, out)
        return trace

    def leaks(self, trace, *options):
        """The stacks of the buffers, as --format=folded has them."""
        stacks = parse_folded(self.mleak("report", "--format=folded", *options, trace).out)
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        return stacks

    def test_without_names_a_site_is_its_native_part_from_main_on(self):
        stacks = self.leaks(self.record_node())
        self.assertLessEqual(len(stacks), 2)  # V8 calls a native function in two ways
        for stack in stacks:
            frames = stack.frames
            self.assertEqual(frames[0], "_start")
            self.assertIn("node::Start(int, char**)", frames)
            self.assertEqual(frames.count("[generated code]"), 1)
            self.assertEqual(frames[-1], "node::NodeArrayBufferAllocator::AllocateUninitialized(unsigned long)")
            self.assertFalse([frame for frame in frames if "guessed" in frame or frame.startswith("0x")])

    def test_with_names_functions_are_on_the_way(self):
        self.check_named(self.record_node("--perf-basic-prof", "--always-sparkplug"))

    def test_names_of_a_dump_are_as_good(self):
        trace = self.record_node("--perf-prof", "--always-sparkplug")
        self.check_named(trace)
        # the sign that there is a dump is no module
        self.assertNotIn(".dump", self.mleak("info", trace).out)

    def check_named(self, trace):
        stacks = self.leaks(trace)
        way = ["serve_[j]", "handleRequest_[j]", "leakHere_[j]"]
        named = sum(stack.bytes for stack in stacks
                    if [frame for frame in stack.frames if frame in way] == way and stack.frames[0] == "_start")
        self.assertGreaterEqual(named, 0.95 * BLOCKS * SIZE)

    def test_files_and_lines_are_known(self):
        trace = self.record_node("--perf-basic-prof", "--always-sparkplug")
        self.assertRegex(self.mleak("report", trace).out, r"handleRequest  \S*leaks\.js:4\b")
        self.assertIn("leaks.js", self.mleak("report", "--by", "file", trace).out)

    def test_files_are_left_out_on_request(self):
        program = self.write("leaks.js", PROGRAM)
        trace, _ = self.record("node", "--perf-basic-prof", "--always-sparkplug", program,
                               options=("--redact=names", *ONLY))
        names = [line for line in self.mleak("report", "--dump", trace).out.splitlines() if line.startswith("    code ")]
        self.assertTrue([line for line in names if "handleRequest" in line])
        self.assertFalse([line for line in names if "leaks.js" in line or ".js:" in line])

    def test_nearly_all_stacks_of_a_start_are_complete(self):
        text = self.mleak("report", self.record_node(only=())).out
        totals = parse_totals(text)
        self.assertGreaterEqual(totals.complete, 0.99 * (totals.of - cut_stacks(text)))
