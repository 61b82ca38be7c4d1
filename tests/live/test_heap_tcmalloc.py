"""Blocks of tcmalloc that nobody saw allocated: found without symbols, as the program and tcmalloc
itself count them."""

import json
import os
import subprocess
import unittest

from mleaktest import needs_bpf, read_line
from test_heap import pages_at_rest, pages_of
from test_heap_jemalloc import CHURNING, JemallocCase
from test_resident import rollup

LIBRARY = "libtcmalloc_minimal.so.4"
PRELOADED = dict(os.environ, LD_PRELOAD=LIBRARY)
USED, CHANGED = 0, 1
# Its first MallocExtension has 8 bytes: it has lost that itself when it registers another one.
ITS_OWN = (1, 8)
OPTIONS = ("TCMALLOC_TRANSFER_NUM_OBJ=2", "TCMALLOC_TRANSFER_NUM_OBJ=1000", "TCMALLOC_SKIP_SBRK=1",
           "TCMALLOC_AGGRESSIVE_DECOMMIT=1", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1")
PYTHON = """
import ctypes, time
keep = {i: str(i) * (i % 50) for i in range(10000)}
more = [bytearray(size) for size in range(1, 300000, 1997)]
del more[::2]
value = ctypes.c_size_t()
ask = ctypes.CDLL(None).MallocExtension_GetNumericProperty
for _ in range(3):
    ask(b"generic.current_allocated_bytes", ctypes.byref(value))
print(value.value, flush=True)
time.sleep(1000)
"""


class TcmallocCase(JemallocCase):
    def setUp(self):
        super().setUp()
        if b"tcmalloc" in subprocess.run(["true"], env=PRELOADED, stderr=subprocess.PIPE).stderr:
            self.skipTest(LIBRARY + " is not installed")

    def assert_lost(self, trace, true):
        """All that is lost was lost by the program or by tcmalloc, and of its bytes 98 % are.  A large
        block may begin where a slab has been: then a word in what is free may still say so."""
        stale = self.older(trace)["stale"]
        self.assertLessEqual(stale[0], max(3, true[0] // 100))
        for found, wanted, own, held in zip(self.lost(trace), true, ITS_OWN, stale):
            self.assertLessEqual(found, wanted + own)
            self.assertGreater(found + held, wanted * 98 // 100)

    def given_out(self, trace):
        return sum(size for size, state in self.blocks(trace)[0] if state in (USED, CHANGED))

    def check_leaker(self, program, **options):
        process, told = self.begin([program], **options)
        pages = pages_at_rest(process.pid)
        trace, result = self.reach(process)
        self.assertEqual(pages_of(process.pid), pages)
        self.assertRegex(result.out, r"(?m)^  of blocks of tcmalloc from before the recording, ")
        self.assertNotIn("walked", result.out)
        self.assert_lost(trace, told["lost"])
        self.assertGreater(self.lost(trace)[1], told["lost"][1] * 98 // 100)
        older = self.older(trace)
        self.assertGreaterEqual(older["held"][0], told["kept"][0])
        self.assertGreaterEqual(older["held"][1], told["kept"][1])
        self.assertEqual(self.given_out(trace), told["allocated"][1])

    def true_of(self, told):
        return tuple(sum(told[what][i] for what in ("single", "listed", "mapped")) for i in (0, 1))


class TcmallocTest(TcmallocCase):
    def test_a_preloaded_library(self):
        self.check_leaker(self.compiled("heap_leaker"), env=PRELOADED)

    def test_a_program_that_was_linked_with_it(self):
        for options in (("-l:" + LIBRARY,), ("-Wl,--whole-archive", "-l:libtcmalloc_minimal.a",
                                             "-Wl,--no-whole-archive", "-lstdc++", "-lm")):
            if subprocess.run(["gcc", "-shared", "-o", self.path("x"), *options],
                              stderr=subprocess.DEVNULL).returncode:
                continue
            with self.subTest(options):
                self.check_leaker(self.compiled("heap_leaker", "-Wl,--no-as-needed", *options))

    def test_lists_cycles_and_threads_that_go_on(self):
        program = self.compiled("heap_target")
        for argv in ([program], [program, "churn"], [program, "churn"], [program, "churn"]):
            process, told = self.begin(argv, env=PRELOADED)
            lost = self.true_of(told)
            trace, result = self.reach(process)
            older = self.older(trace)
            held = older["held"][0] + older["possible"][0]
            if held <= told["kept"][0] * 98 // 100:
                # a Span that changes each time it is read is left out, with all its blocks, and that is told
                self.assertIn("walked", result.out, older)
                self.assertGreater(held, told["kept"][0] * 9 // 10)
            self.assertGreater(self.lost(trace)[0], lost[0] * 98 // 100)
            if "churn" not in argv:
                self.assert_lost(trace, lost)
                self.assertGreaterEqual(held, told["kept"][0])
                continue
            # what only registers hold seems lost, and more where passes differ, which is told
            reach = self.document(trace)["reach"][0]
            doubtful = CHURNING if reach["settled"] else 23
            self.assertLessEqual(self.lost(trace)[0], lost[0] + ITS_OWN[0] + doubtful)

    def test_options_of_the_library(self):
        program = self.compiled("heap_target")
        for option in OPTIONS:
            with self.subTest(option):
                name, value = option.split("=")
                process, told = self.begin([program], env=dict(PRELOADED, **{name: value}))
                trace, _ = self.reach(process)
                self.assert_lost(trace, self.true_of(told))

    def test_python_has_lost_nothing_and_the_ledger_adds_up(self):
        target = self.spawn(["/usr/bin/python3", "-c", PYTHON], stdin=subprocess.PIPE,
                            env=dict(PRELOADED, PYTHONMALLOC="malloc"))
        given = int(read_line(target))
        trace, result = self.reach(target)
        self.assertNotIn("walked", result.out)
        self.assertLessEqual(self.lost(trace), ITS_OWN)
        # the number itself had to be printed
        self.assertAlmostEqual(self.given_out(trace), given, delta=500)
        process, = json.loads(self.report(trace, "--resident", "--format=json"))["processes"]
        self.assertAlmostEqual(process["rss"], rollup(target.pid), delta=0.02 * process["rss"])
        self.assertGreaterEqual(process["named"], 0.98 * process["rss"])
        self.assertTrue(process["all_blocks_known"])
        self.assertNotIn("malloc_trim", self.report(trace, "--resident"))

    def test_sqlite_has_lost_nothing(self):
        target = self.spawn(["sqlite3", ":memory:"], stdin=subprocess.PIPE, env=PRELOADED)
        target.stdin.write(b"CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
                           b"LIMIT 20000) SELECT i, hex(randomblob(i % 300)) AS text FROM n;\n"
                           b"CREATE INDEX x ON t(text);\nSELECT count(*) FROM t;\n")
        target.stdin.flush()
        self.assertEqual(read_line(target), "20000")
        trace, result = self.reach(target)
        self.assertNotIn("walked", result.out)
        older = self.older(trace)
        self.assertLessEqual(self.lost(trace), ITS_OWN)
        self.assertGreater(sum(sums[1] for sums in older.values()), 3 << 20)

    def test_a_layout_that_is_not_known(self):
        process, _ = self.begin([self.compiled("heap_target")], env=PRELOADED)
        self.check_destroyed(process, LIBRARY)


@needs_bpf
class RecordTest(TcmallocCase):
    preloaded, may_lose = False, True

    def test_a_recording_has_blocks_from_before_and_its_own(self):
        trace, told = self.recorded(PRELOADED)
        self.assert_lost(trace, self.true_of(told))


if __name__ == "__main__":
    unittest.main()
