"""Whose the resident memory is, beside what the program knows of itself and what smaps says of it."""

import subprocess

from backends import both_backends
from mleaktest import needs_bpf, read_line
from residenttest import MIB, PAGE, ResidentCase, rollup

MALLINFO = """
import ctypes, sys
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                "fordblks keepcost".split()]
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype = ctypes.c_void_p
blocks = [libc.malloc(1500) for _ in range(10000)]
for block in blocks:
    ctypes.memset(block, 1, 1500)
for block in blocks[::2]:
    libc.free(ctypes.c_void_p(block))
print(libc.mallinfo2().fordblks, flush=True)
sys.stdin.read()
"""


@both_backends
class ResidentTest(ResidentCase):
    def test_each_kind_has_its_bytes(self):
        rss = []
        trace, said = self.reach(self.build("resident_target"), before_end=lambda pid: rss.append(rollup(pid)))
        told = {name: int(number) for name, number in map(str.split, said)}
        process = self.resident()
        self.assert_adds_up(process)
        self.assertAlmostEqual(process["rss"], rss[0], delta=0.02 * rss[0])
        self.assertGreaterEqual(process["named"], 0.98 * process["rss"])
        self.assertEqual(self.of_function(process, "map_half", "mapped"), told["half"], process)
        self.assertAlmostEqual(self.of_function(process, "get_large", "blocks"), told["large"], delta=PAGE)
        self.assertEqual(self.of_function(process, "get_kept", "blocks"), told["kept"])
        self.assertGreaterEqual(process["kinds"]["shared"], told["shared"])
        self.assertGreaterEqual(process["kinds"]["stacks"], told["stacks"])
        self.assertLess(process["kinds"]["stacks"], told["stacks"] + MIB)
        # the page of the kernel's probes is the kernel's
        self.assertEqual(process["kinds"]["code"], MIB)
        files = {row["path"]: row["bytes"] for row in process["rows"] if row["kind"] == "files"}
        self.assertGreaterEqual(files[self.path("resident_target")], told["table"])

    def test_a_heap_with_holes_names_what_keeps_it(self):
        self.reach(self.build("resident_target"))
        self.assert_holes_are_named()
        self.assertEqual(len(self.resident("-n", "1")["nearly_empty"]["stacks"]), 1)
        text = self.report(self.path("x.mlk"), "--resident", "-n", "1")
        self.assertRegex(text, r"(?m)^  [\d,]+ bytes in [\d,]+ pages of which at most a quarter is in use cannot go back "
                               r"to the system; their blocks are of:\n +[\d,]+ +get_kept < make_holes < main")

    def test_a_heap_of_jemalloc_with_holes(self):
        self.reach(self.build("resident_target", *self.jemalloc()))
        self.assert_holes_are_named()

    def test_what_follows_a_library_is_none_of_it(self):
        with open(self.path("zeroed.c"), "w") as source:
            source.write("char zeroed[8 << 20];")
        built = self.finish(self.spawn(["gcc", "-shared", "-fPIC", "-o", self.path("zeroed.so"),
                                        self.path("zeroed.c")]))
        self.assertEqual(built.status, 0, built.err)
        _, said = self.reach(self.build("resident_beside"), self.path("zeroed.so"))
        self.assertEqual(said, ["one"])
        process = self.resident()
        files = {row["path"]: row["bytes"] for row in process["rows"] if row["kind"] == "files"}
        self.assertGreaterEqual(files[self.path("zeroed.so")], 2 * MIB)
        self.assertLess(files[self.path("zeroed.so")], 2 * MIB + 32 * PAGE)
        self.assertEqual(self.of_function(process, "map_at", "mapped"), 3 * MIB)

    def test_memory_that_nobody_saw_mapped_is_of_what_points_to_it(self):
        _, said = self.reach(self.build("resident_kept"))
        self.assert_keepers(self.resident(), said, recorded=True)

    def test_what_it_cannot_answer(self):
        for argv, said in ((["--resident", "--growth"], "prints text, or JSON"),
                           (["--resident", "--fail-on-leak"], "does not look for leaks"),
                           (["--resident", "--function", "f"], "only --at, --pid and --top")):
            result = self.mleak("report", *argv, self.path("x.mlk"))
            self.assertEqual(result.status, 2)
            self.assertIn(said, result.err)
        self.finish(self.start_mleak("record", "-o", self.path("x.mlk"), "--", self.sample("single")))
        result = self.mleak("report", "--resident", self.path("x.mlk"))
        self.assertEqual(result.status, 2)
        self.assertRegex(result.err, r"^mleak: '.*x.mlk' does not say where the memory was: record it with --reach\n$")


@needs_bpf
class ResidentAttachedTest(ResidentCase):
    def check_holes(self, *options):
        """The program makes them while it is recorded, not before."""
        target = self.spawn([self.build("resident_target", *options), "later"], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "begin")
        record = self.attach(target.pid, "--reach")
        target.stdin.write(b"\n")
        while read_line(target) != "ready":
            pass
        self.stop(record)
        self.assert_holes_are_named()

    def test_a_heap_with_holes_names_what_keeps_it(self):
        self.check_holes()

    def test_a_heap_of_jemalloc_with_holes(self):
        self.check_holes(*self.jemalloc())


class ResidentBeforeTest(ResidentCase):
    def test_memory_from_before_is_of_what_points_to_it(self):
        target, said = self.spawn([self.build("resident_kept")], stdin=subprocess.PIPE), []
        while (line := read_line(target)) != "ready":
            said.append(line)
        result = self.mleak("reach", "-o", self.path("x.mlk"), str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assert_keepers(self.resident(), said, recorded=False)
        text = self.report(self.path("x.mlk"), "--resident")
        self.assertRegex(text, r"(?m)^ +3,145,728  variable blocks in resident_kept: by way of 2 others$")

    def test_of_a_process_that_nobody_recorded(self):
        target = self.spawn([self.build("resident_target")], stdin=subprocess.PIPE)
        told = {}
        while (line := read_line(target)) != "ready":
            name, number = line.split()
            told[name] = int(number)
        result = self.mleak("reach", "-o", self.path("x.mlk"), str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        process = self.resident()
        self.assert_adds_up(process)
        self.assertAlmostEqual(process["rss"], rollup(target.pid), delta=0.02 * process["rss"])
        self.assertTrue(process["all_blocks_known"])
        kinds = process["kinds"]
        # malloc rounds each up, and has a few of its own for the threads
        self.assertGreaterEqual(kinds["before"], told["kept"] + told["large"])
        self.assertLess(kinds["before"], told["kept"] + told["large"] + MIB)
        dropped = told["kept"] * 99
        self.assertGreaterEqual(kinds["free"], dropped)
        self.assertLess(kinds["free"], 1.1 * dropped + MIB)
        self.assertGreater(process["free_pages"], 0.8 * dropped)
        self.assertTrue(process["nearly_empty"]["stacks"][0]["before"])
        self.assertGreater(process["nearly_empty"]["pages"], 900)
        text = self.report(self.path("x.mlk"), "--resident")
        self.assertRegex(text, r"(?m)^ +[\d,]+ +[\d.]+ %  free, kept by the allocator; [\d,]+ bytes of it in whole pages")
        self.assertIn("[before the recording]", text)

    def test_glibc_says_how_much_is_free(self):
        """python3 has arenas of its own; what glibc has free is asked of itself."""
        target = self.spawn(["/usr/bin/python3", "-c", MALLINFO], stdin=subprocess.PIPE)
        free = int(read_line(target))
        result = self.mleak("reach", "-o", self.path("x.mlk"), str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        free_rows = sum(row["bytes"] for row in self.resident()["rows"] if row["kind"] == "free")
        # what was never touched is not in memory
        self.assertLessEqual(free_rows, free + 16384)
        # Python's own arenas may be in one mapping with blocks of glibc's, which rounds up by 15 bytes
        kinds = self.resident()["kinds"]
        self.assertLess(kinds["between_blocks"], 0.1 * kinds["before"] + 32 * PAGE)
        self.assertGreater(free_rows, 0.8 * 5000 * 1500 * 0.9)
