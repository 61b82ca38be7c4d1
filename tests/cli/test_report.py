"""`mleak report` on what is no trace, and on wrong arguments: one sentence and exit status 2."""

import os
import struct
import unittest
import zlib

from mleaktest import LONG, AS_NOBODY, FILE_MAGIC, TESTS, Case

GOLDEN = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")


def header(major=1, required=0):
    """A file header as in doc/trace-format.md, without any chunk behind it."""
    fields = struct.pack("<8sHHIQQIIQQI", FILE_MAGIC, major, 0, 64, required, 0, 1, 0, 0, 0, 0)
    return fields + struct.pack("<I", zlib.crc32(fields))


class ReportTest(Case):
    def refused(self, name, **options):
        result = self.mleak("report", name, **options)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming=name)
        return result.err

    def test_missing_file(self):
        self.assertIn("No such file", self.refused(self.path("none.mlk")))

    def test_missing_default_file(self):
        result = self.mleak("report")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="mleak.mlk")

    def test_directory(self):
        self.refused(self.dir)

    def test_empty_file(self):
        self.refused(self.write("empty.mlk", b""))

    def test_text_file(self):
        self.refused(self.write("text.mlk", b"no trace at all\n" * 100))

    def test_device(self):
        self.refused("/dev/null")
        self.refused("/dev/zero", timeout=LONG)

    def test_fifo_is_not_waited_for(self):
        os.mkfifo(self.path("fifo.mlk"))
        self.refused(self.path("fifo.mlk"), timeout=LONG)

    def test_what_is_done_with_a_pipe_is_said(self):
        """The name that is told is one that works with the same pipe."""
        def piped(name):
            writer = self.spawn(["cat", GOLDEN])
            result = self.mleak("report", "--format=folded", name, stdin=writer.stdout)
            self.finish(writer)
            return result

        result = piped("/dev/stdin")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="give '-' in place of it to read a trace from the standard input")
        with open(GOLDEN[:-len("mlk")] + "folded", encoding="utf-8") as folded:
            self.assertEqual(piped("-").out, folded.read())

    def test_elf_file(self):
        self.refused("/bin/true")

    def test_header_cut_everywhere(self):
        for cut in range(1, len(header())):
            with self.subTest(cut=cut):
                self.refused(self.write("cut.mlk", header()[:cut]))

    def test_header_and_no_chunk(self):
        self.refused(self.write("header.mlk", header()))

    def test_header_and_no_chunk_but_other_bytes(self):
        self.refused(self.write("other.mlk", header() + b"\xa5" * 5000))

    def test_later_version(self):
        self.assertIn("version", self.refused(self.write("later.mlk", header(major=2))))

    def test_unknown_required_feature(self):
        self.refused(self.write("feature.mlk", header(required=1 << 63)))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_file_that_may_not_be_read(self):
        self.refused(self.write("secret.mlk", header(), mode=0o600), **AS_NOBODY)

    def test_wrong_usage(self):
        for args in (["--nonsense"], ["--format=nonsense"], ["--format"], ["-n", "many"],
                     ["-n", "-1"], ["-n", "3x"], ["--symfs", "nonsense"], ["--symfs", "/etc/passwd"],
                     ["--by", "colour"], ["--temporary", "5"], ["--temporary", "x", "--folded", "--cost=temporary"],
                     ["--temporary", "0", "--format=json"], ["--cost", "much", "--folded"], ["--cost", "peak"],
                     ["--by", "size", "--folded"], ["--function", "("], ["--min-bytes", "3X"],
                     ["--min-bytes", "99999999T"], ["--older", "-1"], ["--older", "5y"],
                     ["--older", "1e3"], ["--at", ""], ["--between", "3"],
                     ["--between", "3,2"], ["--fail-on-leak=x"],
                     ["--growth", "--timeline"], ["--timeline", "--format=html"], ["--growth", "--format=pprof"], ["one.mlk", "two.mlk"]):
            with self.subTest(args=args):
                result = self.mleak("report", *args)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_messages(result.err)

    def test_what_has_no_effect_is_refused_by_its_name(self):
        for args, naming in ((["--dump", "--fail-on-leak"], "--fail-on-leak"),
                             (["--dump", "--fail-on-leak=5"], "--fail-on-leak"),
                             (["--dump", "--format=json"], "--dump"),
                             (["--dump=full", "--folded"], "--dump"),
                             (["--dump", "--growth"], "--dump"),
                             (["--dump", "--by", "size"], "--dump"),
                             (["--dump", "--function", "x"], "--dump"),
                             (["--dump", "--at", "1"], "--dump"),
                             (["--at", "10", "--between", "5,10"], "--at and --between"),
                             (["--between", "5,10", "--at", "10"], "--at and --between"),
                             (["--addr", "0x5", "--fail-on-leak"], "--fail-on-leak"),
                             (["--inverted", "--flat"], "--inverted"),
                             (["--inverted", "--growth"], "--inverted"),
                             (["--inverted", "--by", "size"], "--inverted"),
                             (["--inverted", "--format=html"], "--inverted"),
                             (["--addr", "0x5", "--dump"], "--addr")):
            with self.subTest(args=args):
                result = self.mleak("report", *args, GOLDEN)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming=naming)
