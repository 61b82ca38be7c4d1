"""`mleak unwind` and damage: stacks that are damaged, or not of this trace, are unwound again."""

import struct
import zlib

from unwindtest import (CHUNK_HEADER, END, EVENTS, FILE_HEADER, HEAD, INDEX, UNWOUND, UnwindCase, chunks_of,
                        join)


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
            self.assertIn("of its chunks is lost", result.err)
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
