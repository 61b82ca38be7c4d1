"""`mleak unwind`: what is shown of a trace stays the same, whatever becomes of the stacks in it."""

import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import time
import unittest
import zlib

from mleaktest import AS_NOBODY
from unwindtest import (CHUNK_HEADER, END, EVENTS, FILE_HEADER, GOLDEN, UNWOUND, VIEWS, UnwindCase, chunks_of,
                        join)


class UnwindTest(UnwindCase):
    def test_all_views_are_the_same(self):
        self.assertGreaterEqual(len(GOLDEN), 3)
        for trace in GOLDEN:
            with self.subTest(trace=os.path.basename(trace)):
                said = self.unwind("-o", self.unwound, trace)
                self.assertRegex(said, r"^mleak: unwound the stacks? of [\d,]+ allocations?; '.*' has "
                                 r"[\d,]+ bytes, '.*' had [\d,]+\n$")
                self.assert_same_reports(trace, self.unwound, VIEWS)
                for command in "info", "script":
                    ours = self.mleak(command, self.unwound).out
                    theirs = self.mleak(command, trace).out
                    differ = ("bytes", "format", "unwound")
                    self.assertEqual([line for line in ours.splitlines()
                                      if line.split()[0] not in differ],
                                     [line for line in theirs.splitlines()
                                      if line.split()[0] not in differ])
                self.assertRegex(self.mleak("info", self.unwound).out, r"(?m)^unwound +yes$")
                self.assertNotIn("unwound", self.mleak("info", trace).out)

    def test_the_other_reader_reads_it(self):
        for trace in GOLDEN:
            with self.subTest(trace=os.path.basename(trace)):
                self.unwind("-o", self.unwound, trace)
                text = self.dump_whole(self.unwound, full=True)
                self.assertIn(": UNWOUND, seq ", text)
                original = self.dump_whole(trace, full=True)
                events = [line for line in original.splitlines() if line.startswith("  ALLOC ")]
                self.assertEqual([line for line in text.splitlines()
                                  if line.startswith("  ALLOC ")], events)

    def test_reports_do_not_unwind(self):
        """Without the EVENTS chunks' registers and stacks, which are filled with garbage under right
        checksums: a report that looked at them could not be the same."""
        self.unwind("-o", self.unwound, self.trace)
        data = self.read(self.unwound)
        chunks = chunks_of(data)
        for before, chunk in zip(chunks, chunks[1:]):
            if chunk.type != EVENTS:
                continue
            self.assertEqual(before.type, UNWOUND)
            content = before.content()
            chunk.set_content(b"\xff" * 64)
            before.set_content(struct.pack("<I", zlib.crc32(chunk.payload)) + content[4:])
        changed = self.write("changed.mlk", join(data, chunks))
        self.assert_same_reports(self.trace, changed, VIEWS)

    def test_in_place_by_default_and_twice_is_once(self):
        data = self.read(self.trace)
        path = self.write("mleak.mlk", data)
        os.chmod(path, 0o640)
        self.unwind("-q", path)
        once = self.read(path)
        self.assertGreater(len(once), len(data))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        self.unwind(path)
        self.assertEqual(self.read(path), once)
        self.assert_nothing_is_left(["mleak.mlk"])

    def test_a_link_stays_one(self):
        path = self.write("real.mlk", self.read(self.trace))
        link = self.path("link.mlk")
        os.symlink("real.mlk", link)
        self.unwind(link)
        self.assertTrue(os.path.islink(link))
        self.assertIn("UNWOUND", self.mleak("report", "--dump", path).out)

    def test_one_thread_writes_the_same(self):
        other = self.path("other.mlk")
        self.unwind("-o", self.unwound, "-j", "1", self.trace)
        self.unwind("-o", other, "-j", "3", self.trace)
        self.assertEqual(self.read(self.unwound), self.read(other))

    def test_quiet(self):
        self.assertEqual(self.unwind("-q", "-o", self.unwound, self.trace), "")


class RefusalTest(UnwindCase):
    def refuse(self, status, naming, *args, **options):
        result = self.mleak("unwind", *args, **options)
        self.assertEqual((result.status, result.out), (status, ""), result.err)
        self.assert_one_message(result.err, naming=naming)

    def test_what_is_no_trace(self):
        self.refuse(2, "no.mlk", self.path("no.mlk"))
        self.refuse(2, "is not a mleak trace", self.write("text", b"x" * 100))
        self.refuse(2, "one trace at a time", "a", "b")
        self.refuse(2, "--nonsense", "--nonsense")
        self.refuse(2, "mleak unwind --help", "--inline", self.trace)
        self.refuse(2, "--jobs", "-j", "0", self.trace)
        self.assert_nothing_is_left(["text"])

    def test_a_trace_that_was_cut_is_not_replaced(self):
        data = self.read(self.trace)
        path = self.write("cut.mlk", data[:-10])
        self.refuse(2, "was cut, or is still being recorded", path)
        self.refuse(2, "was cut, or is still being recorded", "-o", path, path)
        self.assertEqual(self.read(path), data[:-10])
        said = self.unwind("-q", "-o", self.unwound, path)
        self.assertRegex(said, r"was cut: \d+ bytes belong to no whole chunk, and were left out\n$")
        self.assertEqual(self.shown(self.unwound, ["--folded"])[:2],
                         self.shown(path, ["--folded"])[:2])
        self.assertIn("not ended", self.mleak("report", "--dump", self.unwound).out[-200:])

    def test_a_damaged_trace_is_not_touched(self):
        data = bytearray(self.read(self.trace))
        at = FILE_HEADER
        while struct.unpack_from("<H", data, at + 12)[0] != EVENTS:
            at += CHUNK_HEADER + struct.unpack_from("<I", data, at + 24)[0]
        for place in (at + 40, at + CHUNK_HEADER + 40):  # of the header, of the payload
            damaged = bytearray(data)
            damaged[place] ^= 1
            path = self.write("damaged.mlk", bytes(damaged))
            self.refuse(2, "it is damaged", path)
            self.assertEqual(self.read(path), bytes(damaged))
            self.assert_nothing_is_left(["damaged.mlk"])

    def test_a_signal_leaves_the_trace_as_it_is(self):
        """At whatever moment it comes: then there is the old trace or the new one, and nothing else."""
        data = self.read(self.trace)
        path = self.write("mleak.mlk", data)
        self.unwind("-q", "-o", self.unwound, path)
        new = self.read(self.unwound)
        os.unlink(self.unwound)
        for microseconds in range(0, 60000, 3000):
            self.write("mleak.mlk", data)
            process = subprocess.Popen([self.program, "unwind", "-q", path])
            time.sleep(microseconds / 1e6)
            process.send_signal(signal.SIGTERM)
            self.assertIn(process.wait(), (0, -signal.SIGTERM))
            self.assertIn(self.read(path), (data, new))
            self.assert_nothing_is_left(["mleak.mlk"])

    def test_what_stands_behind_the_end_is_not_dropped(self):
        data = self.read(self.trace)
        chunks = chunks_of(data)
        chunks.insert(1, chunks.pop())
        self.assertEqual(chunks[1].type, END)
        early = join(data, chunks)
        path = self.write("early.mlk", early)
        self.refuse(2, "it is damaged", path)
        self.assertEqual(self.read(path), early)

    def test_a_file_that_came_meanwhile_is_not_replaced(self):
        """As when a recording begins, and takes the name."""
        data = self.read(self.trace)
        for _ in range(50):
            path = self.write("mleak.mlk", data)
            process = self.spawn([self.program, "unwind", path])
            while not self.is_writing(process) and process.poll() is None:
                pass
            process.send_signal(signal.SIGSTOP)
            if self.is_writing(process):
                break
            process.send_signal(signal.SIGCONT)
            self.finish(process)
        os.rename(path, self.path("mleak.mlk.old"))
        self.write("mleak.mlk", b"another")
        process.send_signal(signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="is another file now")
        self.assertEqual(self.read(path), b"another")
        self.assert_nothing_is_left(["mleak.mlk", "mleak.mlk.old"])

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_nobody_else_may_read_it_than_could_before(self):
        os.chmod(self.dir, 0o777)
        program = shutil.copy(self.program, self.dir)  # which nobody can reach
        for group, mode in (("nogroup", 0o644), ("root", 0o604)):
            path = self.write("mleak.mlk", self.read(self.trace))
            shutil.chown(path, "root", group)
            os.chmod(path, 0o644)
            done = subprocess.run([program, "unwind", "-q", path], **AS_NOBODY)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), mode)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_file_of_another_user_is_not_replaced(self):
        other = self.write("other", b"mine")
        shutil.chown(other, "nobody")
        self.refuse(2, "of another user", "-o", other, self.trace)
        self.assertEqual(self.read(other), b"mine")

    def test_where_nothing_can_be_written(self):
        os.mkdir(self.path("folder"))
        self.refuse(2, "is not a regular file", "-o", self.path("folder"), self.trace)
        self.refuse(2, "No such file or directory", "-o", self.path("not/here"), self.trace)
        self.assert_nothing_is_left(["folder"])

    def test_a_link_that_is_named_is_not_followed(self):
        trace = self.write("real.mlk", self.read(self.trace))
        for name, target in ("of-the-trace", "real.mlk"), ("of-another", "other"), ("of-none", "nowhere"):
            os.symlink(target, self.path(name))
            self.write("other", b"mine")
            self.refuse(2, "give another name with -o", "-o", self.path(name), trace)
            self.assertEqual(os.readlink(self.path(name)), target)
        self.assertEqual((self.read(trace), self.read(self.path("other"))), (self.read(self.trace), b"mine"))
        self.assertFalse(os.path.lexists(self.path("nowhere")))

    def test_a_disk_that_is_full(self):
        path = self.write("mleak.mlk", self.read(self.trace))

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        other = self.path("other.mlk")
        for args, naming in (([path], "to a new file in '%s': File too large; '%s' stays as it was" % (self.dir, path)),
                             (["-o", path, path], "a new file in '%s'" % self.dir),
                             (["-o", other, path], "cannot copy '%s' to '%s': File too large" % (path, other))):
            done = subprocess.run([self.program, "unwind", *args], preexec_fn=limit, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assert_one_message(done.stderr, naming=naming)
            self.assertEqual(self.read(path), self.read(self.trace))
            self.assert_nothing_is_left(["mleak.mlk"])
