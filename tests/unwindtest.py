"""unwindtest - for the tests of `mleak unwind`: the chunks of a trace, and reports that stay the same"""

import glob
import os
import struct
import subprocess
import zlib

from mleaktest import CHUNK_MAGIC, TESTS
from readertest import ReaderCase

# Those that can be unwound.
GOLDEN = sorted(set(glob.glob(os.path.join(TESTS, "golden", "*.mlk"))) -
                set(glob.glob(os.path.join(TESTS, "golden", "*-dropped.mlk"))))
FILE_HEADER, CHUNK_HEADER = 64, 96
MODULE, EVENTS, END, INDEX, UNWOUND = 3, 4, 7, 8, 11
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
