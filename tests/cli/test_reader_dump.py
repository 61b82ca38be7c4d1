"""`mleak report --dump`, and a reader written from the specification alone, read the same."""

import contextlib
import glob
import io
import os
import re
import unittest

import trace_reader
from mleaktest import ROOT, TESTS
from readertest import ReaderCase

GOLDEN = sorted(glob.glob(os.path.join(TESTS, "golden", "*.mlk")))


def example():
    """The bytes of the example in the specification."""
    with open(os.path.join(ROOT, "doc", "trace-format.md")) as doc:
        lines = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} +)+)", doc.read(), re.M)
    return bytes.fromhex("".join(lines))


class DumpTest(ReaderCase):
    def test_example_of_the_specification(self):
        text = self.dump_whole(self.write("example.mlk", example()))
        self.assertIn("salt 11223344", text)
        self.assertIn("THREADS, seq 0, flags 0x0, stored 8, raw 8,", text)
        self.assertIn("  THREAD tgid 7, tid 7, name main\n", text)
        self.assertTrue(text.endswith(", not ended\n"), text)

    def in_process(self, path):
        """Exit status and text of the second reader."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                return 0, "".join(line + "\n" for line in trace_reader.dump(path))
        except trace_reader.Refused:
            return 2, ""

    def test_example_damaged_anywhere(self):
        whole = example()
        for place in range(len(whole)):
            damaged = bytearray(whole + whole[trace_reader.FILE_HEADER.size:])
            damaged[place] ^= 0x10
            for content in (whole[:place], bytes(damaged)):
                path = self.write("damaged.mlk", content)
                result = self.mleak("report", "--dump", path)
                self.assertEqual((result.status, result.out), self.in_process(path), place)

    @unittest.skipIf(not GOLDEN, "there are no golden traces in tests/golden")
    def test_golden_traces(self):
        for path in GOLDEN:
            for full in (False, True):
                with self.subTest(path=path, full=full):
                    self.dump_whole(path, full)

    def test_full_is_dump_given_twice(self):
        path = (GOLDEN or [self.write("example.mlk", example())])[0]
        self.assertEqual(self.report(path, "--dump", "--dump"), self.report(path, "--dump=full"))

    def test_unknown_kind_of_dump(self):
        result = self.mleak("report", "--dump=nonsense", "x.mlk")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="nonsense")
