"""Blocks that nobody saw allocated: found in the allocator's memory, as the program itself counts
them, and judged by the pointers to them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from mleaktest import AS_NOBODY, TESTS, Case, needs_bpf, read_line, wait_until
from readertest import READER

THREADS_KEEP = 3 * 267  # blocks
LARGEST = 128 << 10  # bytes, in an arena: what is larger has a mapping of its own

PYTHON = """
import ctypes, json, time
names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
call = ctypes.CDLL(None).mallinfo2
call.restype = Info
keep = [b"x" * size for size in range(100, 5000, 7)]
for _ in range(10):
    info = call()
print("in-use 0 %d" % info.uordblks, flush=True)
print("ready", flush=True)
time.sleep(1000)
"""

GROWS = """
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
static void *volatile keep[1000];
int main(void)
{
	struct pollfd end = {.events = POLLIN};
	for (int i = 0; i < 24000; i++)
		keep[i % 1000] = malloc(47);
	printf("lost %d %d\\nready\\n", 23000, 23000 * 56);
	fflush(stdout);
	for (int n = 0; n < 10000 && !poll(&end, 1, 10); n++)
		for (int i = 0; i < 1000; i++)
			keep[i] = malloc(47);
	return 0;
}
"""


def other_libc():
    """What links a program with the glibc in the folder MLEAK_TEST_LIBC: tests/glibc/check.py"""
    folder = os.environ.get("MLEAK_TEST_LIBC")
    return ["-Wl,--dynamic-linker=%s/ld-linux-x86-64.so.2" % folder, "-Wl,-rpath," + folder] if folder else []


def pages_of(pid):
    """Pages that the kernel has in memory for the process, of its anonymous mappings."""
    count = 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/pagemap" % pid, "rb") as pagemap:
        for line in maps:
            start, end = (int(part, 16) // 4096 for part in line.split()[0].split("-"))
            if line.split()[1] != "rw-p" or " /" in line:
                continue
            pagemap.seek(8 * start)
            entries = memoryview(pagemap.read(8 * (end - start))).cast("Q")
            count += sum(entry >> 63 for entry in entries)
    return count


def asleep(pid):
    """Do all its threads wait for something?"""
    states = set()
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task), encoding="latin-1") as stat:
            states.add(stat.read().rpartition(")")[2].split()[0])
    return states == {"S"}


def pages_at_rest(pid):
    """The same of a process that has said its last word, and may still touch its stacks."""
    wait_until(lambda: asleep(pid), "it goes on")
    return pages_of(pid)


class HeapCase(Case):
    of, report_of = None, None  # a trace's file and when it was written; what a report says of it

    def document(self, trace):
        """What a report says of @trace.  It is asked once: a sanitized one of many events takes long."""
        of = os.stat(trace).st_ino, os.stat(trace).st_mtime_ns
        if self.of != of:
            self.of, self.report_of = of, json.loads(self.report(trace, "--format=json"))
        return self.report_of

    def build(self, *options, name="heap_target"):
        program = self.path(name)
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", program,
                                        os.path.join(TESTS, "live", name + ".c"), *other_libc(),
                                        *options]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def begin(self, argv, **options):
        """The process, when it has said "ready", and {what: (blocks, bytes)} as it said before."""
        process = self.spawn(argv, stdin=subprocess.PIPE, **options)
        told = {}
        while (line := read_line(process)) != "ready":
            what, blocks, size = line.split()
            told[what] = int(blocks), int(size)
        return process, told

    def reach(self, process, *options, **popen):
        trace = self.path("x.mlk")
        result = self.mleak("reach", "-p", str(process.pid), "-o", trace, *options, **popen)
        self.assertEqual(result.status, 0, result.err)
        return trace, result

    def older(self, trace):
        """What a report says of the only process that was looked at: {verdict: (blocks, bytes)}"""
        reach = self.document(trace)["reach"]
        self.assertEqual(len(reach), 1)
        return {verdict: (sums["blocks"], sums["bytes"])
                for verdict, sums in reach[0]["older"].items()}

    def recording(self, process):
        """A trace of @process, which allocates without pause, and had begun before: a million blocks a second."""
        trace = self.path("x.mlk")
        record = self.finish(self.start_mleak("record", "--reach", "-p", str(process.pid), "-d", "0.2", "-o", trace))
        self.assertEqual(record.status, 0, record.err)
        return trace

    def assert_own(self, trace):
        """The recording has blocks of its own, and none of them is lost."""
        document = self.document(trace)
        self.assertEqual(document["reach"][0]["blocks"]["lost"]["blocks"], 0)
        self.assertGreater(document["totals"]["allocated"]["blocks"], 1000)

    def lost(self, trace):
        older = self.older(trace)
        return tuple(older["lost"][i] + older["lost-with"][i] for i in (0, 1))

    def blocks(self, trace):
        """[(size, state)] of all blocks, and the sizes of all arenas, as the second reader says."""
        text = subprocess.run([sys.executable, READER, trace], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(text.stderr, "")
        self.assertEqual(text.stdout, self.report(trace, "--dump"))
        return ([(int(size), int(state)) for size, state in
                 re.findall(r"(?m)^    block \w+ (\d+) state (\d+) ", text.stdout)],
                [int(size) for size in re.findall(r"(?m)^    arena \w+ (\d+)$", text.stdout)])

    def assert_in_use(self, trace, told):
        """mallinfo2() counts chunks, of which the size is 8 bytes, those in threads' caches, and the
        headers of all arenas but the main one."""
        blocks, arenas = self.blocks(trace)
        self.assertNotIn(1, {state for _, state in blocks})
        chunks = sum(size + 8 for size, state in blocks if state in (0, 2, 6) and size < LARGEST)
        heads = sum(-(-(0x30 + size) // 16) * 16 for size in arenas[1:])
        self.assertEqual(chunks + heads, told["in-use"][1])


class HeapTest(HeapCase):
    def check(self, *argv):
        process, told = self.begin(argv)
        lost = tuple(sum(told[what][i] for what in ("single", "listed", "mapped")) for i in (0, 1))
        pages = 0 if "churn" in argv else pages_at_rest(process.pid)
        trace, result = self.reach(process)
        if "churn" not in argv:
            self.assertEqual(pages_of(process.pid), pages)
        older = self.older(trace)
        kept, held = told["kept"][0] + THREADS_KEEP, older["held"][0] + older["possible"][0]
        if "churn" in argv:
            # what changes meanwhile is not judged, and never lost
            self.assertGreater(held, kept * 98 // 100)
            for found, true in zip(self.lost(trace), lost):
                self.assertLessEqual(found, true)
                self.assertGreater(found, true * 98 // 100)
            return None
        self.assertEqual(self.lost(trace), lost)
        self.assertGreaterEqual(held, kept)
        self.assertEqual(older["stale"][0], 0)
        # it is in the answer, and in the tree
        self.assertRegex(result.out, r"(?m)^  of blocks of glibc(?: 2\.\d\d)? from before the recording, "
                                     r"%s blocks are lost, " % format(lost[0], ","))
        self.assertRegex(result.out, r"(?m)^ +\S+ \S+ +%s  \[before the recording\]$" %
                         format(lost[0], ","))
        self.assertRegex(result.out, r"(?m)^ +1,288 B +23  [|`]- \[41 to 56 bytes\]$")
        self.assertRegex(result.out, r"(?m)^ +\S+ KiB +10,007  [|`]- \[73 to 88 bytes\]$")
        self.assertNotIn("filtered out", result.out)
        folded = self.report(trace, "--lost", "--format=folded")
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()), lost[1])
        return trace, told

    def test_the_rest_of_a_heap_that_is_full_is_no_block(self):
        process, told = self.begin([self.build(name="heap_full")])
        older = self.older(self.reach(process)[0])
        self.assertEqual({word: sums for word, sums in older.items() if word not in ("held", "possible")},
                         {"lost": (0, 0), "lost-with": (0, 0), "stale": (0, 0)})
        self.assertGreaterEqual(older["held"][1] + older["possible"][1], told["kept"][1])

    def test_what_is_lost_is_what_the_program_has_lost(self):
        trace, told = self.check(self.build())
        self.assert_in_use(trace, told)

    def test_a_program_that_has_the_library_in_it(self):
        process, told = self.begin([self.build("-static")])
        trace, _ = self.reach(process)
        self.assert_in_use(trace, told)
        # its calls leave other words on the stack, at times one that leads into a list
        older, lost = self.older(trace), sum(told[what][0] for what in ("single", "listed", "mapped"))
        found = self.lost(trace)[0] + older["stale"][0]
        self.assertLessEqual(found, lost)
        self.assertGreaterEqual(found + older["possible"][0], lost)

    def test_threads_that_allocate_as_fast_as_they_can(self):
        program = self.build()
        for _ in range(3):
            self.check(program, "churn")

    def test_a_program_that_grows_meanwhile(self):
        """Its heap has grown beyond the mappings that were read when the allocator is looked for."""
        program = self.path("grows")
        subprocess.run(["gcc", "-O1", "-o", program, self.write("grows.c", GROWS.encode())], check=True)
        process, told = self.begin([program])
        trace, result = self.reach(process)
        self.assertRegex(result.out, r"(?m)^  of blocks of glibc(?: 2\.\d\d)? from before the recording, ")
        self.assertGreaterEqual(self.lost(trace)[0], told["lost"][0])

    def test_what_is_not_asked_for_is_not_in_the_tree(self):
        process, _ = self.begin([self.build()])
        trace, _ = self.reach(process, "--passes", "2")
        self.assertNotIn("[before", self.report(trace))
        held = self.report(trace, "--verdict=held")
        self.assertRegex(held, r"\[before the recording\]")
        self.assertEqual(self.mleak("report", "--lost", "--fail-on-leak", trace).status, 1)
        info = self.mleak("info", trace).out
        self.assertRegex(info, r"(?m)^heap +%d 1 used \S+ \S+ changed \S+ \S+ free \S+ \S+ own 4 (?:2,592|3,040) "
                               r"arenas 4 unwalked 0 glibc 2\.\d\d$" % process.pid)
        flat = self.report(trace, "--lost", "--format=flat")
        self.assertIn("allocated before the recording", flat)

    def test_python_and_sqlite_have_lost_nothing(self):
        process, told = self.begin([sys.executable, "-c", PYTHON])
        trace, _ = self.reach(process)
        self.assert_in_use(trace, told)
        self.assertLess(self.lost(trace)[1] * 50, told["in-use"][1])
        sqlite = self.spawn(["sqlite3", ":memory:"], stdin=subprocess.PIPE)
        sqlite.stdin.write(b"create table t(a, b); create index i on t(b);"
                           b"with recursive c(x) as (select 1 union all select x + 1 from c "
                           b"where x < 50000) insert into t select x, hex(randomblob(20)) from c;"
                           b"select count(*) from t;\n")
        sqlite.stdin.flush()
        self.assertEqual(read_line(sqlite), "50000")
        trace, _ = self.reach(sqlite)
        self.assertEqual(self.lost(trace), (0, 0))
        self.assertGreater(self.older(trace)["possible"][0], 1000)

    def test_objects_are_told_by_class(self):
        program = self.path("classes")
        built = self.finish(self.spawn(["g++", "-O1", "-o", program,
                                        os.path.join(TESTS, "live", "heap_classes.cc")]))
        self.assertEqual(built.status, 0, built.err)
        process, _ = self.begin([program])
        trace, _ = self.reach(process)
        document = json.loads(self.report(trace, "--lost", "--format=json"))
        names = [frame["function"] for frame in document["frames"]]
        found = {tuple(names[i] for i in reversed(stack["frames"])): stack["outstanding"]["blocks"]
                 for stack in document["stacks"]}
        before = "[before the recording]"
        self.assertEqual(found, {
            (before, "vtable for shop::Order", "[233 to 248 bytes]"): 37,
            (before, "vtable for shop::Basket<int>", "[41 to 56 bytes]"): 31,
            (before, "[41 to 56 bytes]"): 23})

    def test_an_unknown_allocator_is_told(self):
        process, _ = self.begin(["sh", "-c", "echo ready; read x"],
                                env=dict(os.environ, LD_PRELOAD="libmimalloc.so.2"))
        with open("/proc/%d/maps" % process.pid) as maps:
            if "mimalloc" not in maps.read():
                self.skipTest("libmimalloc.so.2 is not installed")
        trace, result = self.reach(process)
        self.assertIn("from before the recording are not judged: the allocator is not known",
                      result.out)
        self.assertNotIn("[before the recording]", result.out)


class ReachCommandTest(HeapCase):
    def test_an_ordinary_user(self):
        if os.geteuid():
            self.skipTest("needs root")
        program, out = self.build(), self.path("out")
        os.chmod(self.path("."), 0o755)
        os.mkdir(out)
        os.chmod(out, 0o777)
        process, told = self.begin([program], **AS_NOBODY)
        trace = os.path.join(out, "x.mlk")
        result = self.mleak("reach", "-o", trace, str(process.pid), **AS_NOBODY)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.lost(trace)[0], sum(told[what][0] for what in
                                                  ("single", "listed", "mapped")))
        other = self.mleak("reach", "-o", os.path.join(out, "y.mlk"), str(os.getpid()), **AS_NOBODY)
        self.assertEqual((other.status, other.out), (2, ""))
        self.assert_one_message(other.err, str(os.getpid()))
        self.assertEqual(os.listdir(out), ["x.mlk"])

    def test_command_line(self):
        for args, wanted in (([], "give the process that is to be looked at"),
                             (["-p", "0"], "'0'"), (["--passes", "1", "1"], "'1'"),
                             (["--nothing"], "--nothing")):
            result = self.mleak("reach", *args)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err)
            self.assertIn(wanted, result.err)
        self.assertIn("--passes", self.mleak("reach", "--help").out)
        quiet = self.spawn(["sleep", "100"])
        result = self.mleak("reach", "-q", "-p", str(quiet.pid), "-o", self.path("x.mlk"))
        self.assertEqual((result.status, result.err), (0, ""))

    def test_a_process_that_ends(self):
        gone = self.spawn(["sleep", "100"])
        gone.send_signal(signal.SIGKILL)
        time.sleep(0)
        os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
        result = self.mleak("reach", "-p", str(gone.pid), "-o", self.path("x.mlk"))
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, str(gone.pid))
        self.assertFalse(os.path.exists(self.path("x.mlk")))


@needs_bpf
class RecordTest(HeapCase):
    preloaded, may_lose = False, True

    def test_a_recording_has_blocks_from_before_and_its_own(self):
        process, told = self.begin([self.build(), "churn"])
        trace = self.recording(process)
        lost = tuple(sum(told[what][i] for what in ("single", "listed", "mapped")) for i in (0, 1))
        for found, true in zip(self.lost(trace), lost):
            self.assertLessEqual(found, true)
            self.assertGreater(found, true * 98 // 100)
        self.assert_own(trace)


if __name__ == "__main__":
    unittest.main()
