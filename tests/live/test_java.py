"""Programs of the Java virtual machine: the stacks of what they leak go through code that it compiles."""

import shutil
import subprocess
import unittest

from backends import both_backends
from mleaktest import LONG, cut_stacks, parse_folded, parse_totals
from waitingtest import WaitingCase

BLOCKS, SIZE = 23000, 8 * 587  # no block of the machine's own has this size

# Memory that is kept by methods that run often enough to be compiled.
# It writes its own map of names in the end, as jcmd would have it do.
PROGRAM = b"""public class Leaks {
  static sun.misc.Unsafe unsafe;
  static int leakHere(int i) { unsafe.allocateMemory(%d); return i; }
  static int handleRequest(int i) { return leakHere(i) + 1; }
  static int serve(int from) { int n = 0; for (int i = 0; i < 100; i++) n = handleRequest(from + i); return n; }
  public static void main(String[] args) throws Exception {
    java.lang.reflect.Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    field.setAccessible(true);
    unsafe = (sun.misc.Unsafe) field.get(null);
    int n = 0;
    while (n < %d) n = serve(n);
    if (args.length > 0) new ProcessBuilder("jcmd", "" + ProcessHandle.current().pid(), "Compiler.perfmap").start().waitFor();
    System.out.println(n);
    System.in.read();
  }
}
""" % (SIZE, BLOCKS)

ONLY = ("--min-size", str(SIZE), "--max-block", str(SIZE))  # of that memory, and nothing else


@both_backends
@unittest.skipUnless(shutil.which("java") and shutil.which("javac"), "there is no java")
class JavaTest(WaitingCase):
    def setUp(self):
        super().setUp()
        source = self.write("Leaks.java", PROGRAM)
        subprocess.run(["javac", "-nowarn", "-d", self.dir, source], check=True, timeout=LONG, capture_output=True)

    def record_java(self, *options, only=ONLY, args=()):
        # it stays: on a busy machine the recorder is late, and reads compiled code after its events
        trace, _ = self.record_waiting("java", *options, "-cp", self.dir, "Leaks", *args, said=str(BLOCKS),
                                       options=("--ring-size", "64M", *only))
        return trace

    def leaks(self, trace, *options):
        """The stacks of the memory, as --format=folded has them."""
        stacks = parse_folded(self.mleak("report", "--format=folded", *options, trace).out)
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        return stacks

    def check_native_part(self, *options):
        stacks = self.leaks(self.record_java(*options))
        self.assertEqual(len(stacks), 1)
        frames = stacks[0].frames
        self.assertIn(frames[0], ("clone3", "__clone3"))
        self.assertIn("JavaMain", frames)
        at = frames.index("[generated code]")
        self.assertIn("JavaCalls::call_helper", frames[at - 1])
        self.assertIn("Unsafe_AllocateMemory0", frames[at + 1])
        self.assertFalse([frame for frame in frames if "guessed" in frame or frame.startswith("0x")])

    def test_without_names_a_site_is_one_stack(self):
        self.check_native_part()

    def test_so_it_is_with_frame_pointers(self):
        self.check_native_part("-XX:+PreserveFramePointer")

    def test_with_a_map_methods_are_on_the_way(self):
        # all is compiled once, at the first call: what is compiled anew replaces what stacks went through
        trace = self.record_java("-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:+PreserveFramePointer", args=["map"])
        named = sum(stack.bytes for stack in self.leaks(trace) if "JavaMain" in stack.frames and
                    [frame for frame in stack.frames if frame.startswith("Leaks.") and frame.endswith("_[j]")])
        self.assertGreaterEqual(named, 0.95 * BLOCKS * SIZE)

    def test_nearly_all_stacks_of_a_start_are_complete(self):
        text = self.mleak("report", self.record_java(only=())).out
        totals = parse_totals(text)
        self.assertGreaterEqual(totals.complete, 0.99 * (totals.of - cut_stacks(text)), text[:2000])
