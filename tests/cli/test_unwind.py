"""`mleak unwind`: what is shown of a trace stays the same, whatever becomes of the stacks in it."""

import glob
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

from mleaktest import AS_NOBODY, CHUNK_MAGIC, TESTS, takes_long
from readertest import ReaderCase

GOLDEN = sorted(glob.glob(os.path.join(TESTS, "golden", "*.mlk")))
FILE_HEADER, CHUNK_HEADER = 64, 96
EVENTS, END, INDEX, UNWOUND = 4, 7, 8, 11
HEAD = 12  # bytes before the counts in an UNWOUND payload
VIEWS = [["--folded"], ["--inline"], ["--flat"], ["--addresses", "--folded"], ["--growth"],
         ["--timeline"], ["--by", "thread"], ["--format=csv"], ["--format=heaptrack"],
         ["--folded", "--cost", "temporary"], ["--folded", "--at", "10ms"],
         ["--between", "1ms,20ms"], ["--jobs", "1"]]


class Chunk:
    """A chunk, to be changed and written again with right checksums."""

    def __init__(self, data, at):
        self.type, self.flags, self.seq, self.stored, self.raw = struct.unpack_from(
            "<HHQII", data, at + 12)
        self.head = bytearray(data[at:at + CHUNK_HEADER])
        self.payload = data[at + CHUNK_HEADER:at + CHUNK_HEADER + self.stored]

    def content(self):
        if not self.flags & 1:
            return self.payload
        return subprocess.run(["zstd", "-dcq"], input=self.payload, stdout=subprocess.PIPE,
                              check=True).stdout

    def set_content(self, content):
        self.payload, self.flags = content, 0

    def bytes(self, seq):
        struct.pack_into("<HHQII", self.head, 12, self.type, self.flags, seq, len(self.payload),
                         self.raw if self.flags & 1 else len(self.payload))
        struct.pack_into("<I", self.head, 76, zlib.crc32(self.payload))
        struct.pack_into("<I", self.head, 92, zlib.crc32(bytes(self.head[:92])))
        return bytes(self.head) + self.payload


def chunks_of(data):
    chunks, at = [], FILE_HEADER
    while at < len(data):
        assert data[at:at + 8] == CHUNK_MAGIC
        chunks.append(Chunk(data, at))
        at += CHUNK_HEADER + chunks[-1].stored
    return chunks


def join(data, chunks):
    return data[:FILE_HEADER] + b"".join(c.bytes(seq) for seq, c in enumerate(chunks))


class UnwindCase(ReaderCase):
    def setUp(self):
        super().setUp()
        self.trace = GOLDEN[1]
        self.unwound = self.path("unwound.mlk")

    def unwind(self, *args):
        result = self.mleak("unwind", *args)
        self.assertEqual((result.status, result.out), (0, ""), result.err)
        return result.err

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def shown(self, trace, view):
        result = self.mleak("report", *view, trace)
        return result.status, result.out.replace(trace, "TRACE"), result.err.replace(trace, "TRACE")

    def assert_same_reports(self, trace, other, views):
        for view in views:
            with self.subTest(view=view):
                self.assertEqual(self.shown(other, view), self.shown(trace, view))

    def is_writing(self, process):
        """Does @process have the new file open, which has no name yet or that of a part?"""
        try:
            files = [os.readlink("/proc/%d/fd/%s" % (process.pid, fd))
                     for fd in os.listdir("/proc/%d/fd" % process.pid)]
        except OSError:
            return False
        return any(f.startswith((self.path("#"), self.path("mleak.mlk.part"))) for f in files)

    def assert_unwound_again(self, trace, changed, views):
        """The stacks that @changed keeps are not used, which is said; it is else like @trace."""
        for view in views:
            with self.subTest(view=view):
                status, out, err = self.shown(changed, view)
                self.assertEqual((status, out, ""), self.shown(trace, view))
                self.assert_one_message(err, naming="unwound again")

    def assert_nothing_is_left(self, expected):
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(expected))


class UnwindTest(UnwindCase):
    @takes_long
    def test_all_views_are_the_same(self):
        self.assertGreaterEqual(len(GOLDEN), 3)
        for trace in GOLDEN:
            with self.subTest(trace=os.path.basename(trace)):
                said = self.unwind("-o", self.unwound, trace)
                self.assertRegex(said, r"^mleak: unwound the stacks of [\d,]+ allocations; '.*' has "
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

    @takes_long
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

    @takes_long
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


class DamageTest(UnwindCase):
    def check_fallback(self, change):
        """Reports of a trace whose UNWOUND chunks were given to @change are those of the original."""
        self.unwind("-o", self.unwound, self.trace)
        data = self.read(self.unwound)
        chunks = chunks_of(data)
        found = [chunk for chunk in chunks if chunk.type == UNWOUND]
        self.assertGreater(len(found), 0)
        for chunk in found:
            content = change(bytearray(chunk.content()))
            if content is not None:
                chunk.set_content(bytes(content))
        changed = self.write("changed.mlk", join(data, chunks))
        self.assert_unwound_again(self.trace, changed, [["--folded"], ["--growth"], ["-j", "1"]])

    def test_stacks_of_another_chunk_are_not_believed(self):
        def change(content):
            content[0] ^= 1
            return content
        self.check_fallback(change)

    def test_a_payload_of_nothing(self):
        self.check_fallback(lambda content: b"")

    @takes_long
    def test_a_payload_that_is_cut_anywhere(self):
        for part in range(1, 20):
            with self.subTest(part=part):
                self.check_fallback(lambda content, n=part: content[:len(content) * n // 20])

    def test_a_module_that_the_trace_has_not(self):
        def change(content):
            at = content.index(b"/usr/lib/x86_64-linux-gnu/libc.so.6")
            content[at - 5] ^= 0xff  # of its build-id
            return content
        self.check_fallback(change)

    def test_a_status_that_there_is_not(self):
        """Its stacks are empty but for one, of which all are."""
        def change(content):
            heads = self.heads(content)
            nr = content_allocs(content)
            columns = [b"", b"\0", b"", b"", b"\x63", b"\1" + b"\0" * (nr - 1) if nr else b""]
            return unwound_payload(content[:HEAD], 0, 1, nr, columns) + heads
        # 0 in the ALLOCs' column is the stack of last time, which the first has not
        self.check_fallback(change)

    def test_fewer_allocs_than_there_are(self):
        def change(content):
            columns = [b"", b"\0", b"", b"", b"\0", b"\1"]
            return unwound_payload(content[:HEAD], 0, 1, 1, columns) + self.heads(content)
        self.check_fallback(change)

    def heads(self, content):
        """What follows the columns of an UNWOUND payload."""
        at = HEAD
        for _ in range(3):
            _, at = uvar(content, at)
        nr = content[at]
        at += 1
        lengths = []
        for _ in range(nr):
            length, at = uvar(content, at)
            lengths.append(length)
        return bytes(content[at + sum(lengths):])

    def test_a_flipped_bit_of_the_file(self):
        """The checksums tell; nothing is lost, as the events are there."""
        self.unwind("-o", self.unwound, self.trace)
        data = bytearray(self.read(self.unwound))
        at = FILE_HEADER
        while struct.unpack_from("<H", data, at + 12)[0] != UNWOUND:
            at += CHUNK_HEADER + struct.unpack_from("<I", data, at + 24)[0]
        data[at + CHUNK_HEADER + 7] ^= 4
        changed = self.write("changed.mlk", bytes(data))
        self.assert_unwound_again(self.trace, changed, [["--folded"], ["--flat"]])


def uvar(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def content_allocs(content):
    at = HEAD
    for _ in range(3):
        value, at = uvar(content, at)
    return value


def encode(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def unwound_payload(head, modules, stacks, allocs, columns):
    return (bytes(head) + encode(modules) + encode(stacks) + encode(allocs) + bytes([len(columns)])
            + b"".join(encode(len(c)) for c in columns) + b"".join(columns))


    def test_a_column_of_a_later_version_is_stepped_over(self):
        self.unwind("-o", self.unwound, self.trace)
        data = self.read(self.unwound)
        chunks = chunks_of(data)
        for before, chunk in zip(chunks, chunks[1:]):
            if before.type != UNWOUND:
                continue
            content = before.content()
            at = HEAD
            for _ in range(3):
                _, at = uvar(content, at)
            nr, ends = content[at], at + 1
            lengths = []
            for _ in range(nr):
                length, ends = uvar(content, ends)
                lengths.append(length)
            body = ends + sum(lengths)
            # garbage in the events: it is these stacks that are shown
            chunk.set_content(b"\xff" * 64)
            before.set_content(struct.pack("<I", zlib.crc32(chunk.payload)) + content[4:at]
                               + bytes([nr + 1]) + content[at + 1:ends] + encode(200)
                               + content[ends:body] + b"\x99" * 200 + content[body:])
        changed = self.write("changed.mlk", join(data, chunks))
        self.assert_same_reports(self.trace, changed, [["--folded"], ["--growth"]])

    def test_a_lost_chunk_of_events_was_lost_when_it_was_before(self):
        """Its UNWOUND chunk tells nothing of times."""
        trace = self.several_chunks()
        self.unwind("-o", self.unwound, trace)
        said = []
        for path in trace, self.unwound:
            data = bytearray(self.read(path))
            events, at = [], FILE_HEADER
            for chunk in chunks_of(data):
                if chunk.type == EVENTS:
                    events.append(at)
                at += CHUNK_HEADER + chunk.stored
            self.assertGreater(len(events), 2)
            data[events[1] + 40] ^= 1
            self.write("lost.mlk", bytes(data))
            result = self.mleak("report", "--folded", self.path("lost.mlk"))
            self.assertEqual(result.status, 0)
            self.assertIn("chunks are lost", result.err)
            said.append(result.err)
        self.assertEqual(said[0], said[1])

    def several_chunks(self):
        """The golden trace, its EVENTS chunk three times at three times."""
        data = self.read(self.trace)
        chunks = []
        for chunk in chunks_of(data):
            if chunk.type in (END, INDEX):
                continue
            chunks.append(chunk)
            if chunk.type != EVENTS:
                continue
            for later in 10**9, 2 * 10**9:
                again = chunks_of(data)[[c.seq for c in chunks_of(data)].index(chunk.seq)]
                first, last = struct.unpack_from("<QQ", again.head, 32)
                struct.pack_into("<QQ", again.head, 32, first + later, last + later)
                chunks.append(again)
        return self.write("several.mlk", join(data, chunks))


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

    def test_a_disk_that_is_full(self):
        path = self.write("mleak.mlk", self.read(self.trace))

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        done = subprocess.run([self.program, "unwind", path], preexec_fn=limit, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assert_one_message(done.stderr, naming="File too large")
        self.assertEqual(self.read(path), self.read(self.trace))
        self.assert_nothing_is_left(["mleak.mlk"])
