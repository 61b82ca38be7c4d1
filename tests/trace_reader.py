#!/usr/bin/env python3
"""trace_reader.py - a second reader of traces, written from doc/trace-format.md alone

usage: trace_reader.py [--full] FILE

Prints the text that `mleak report --dump FILE` prints (`--dump=full` with --full).  It shares no
code with mleak: what both read alike, the specification says.  Needs the command zstd.
On stderr: why a chunk is damaged, and what a writer of this version must not or does not do.
Exit status: 0, or 2 for a file that must be refused.
"""

import os
import struct
import subprocess
import sys
import zlib

from trace_bytes import MASK64, Bytes, Damaged, Refused, note
from trace_code import dump_codes, dump_interpreter
from trace_events import Events, Overruns, Stacks
from trace_reach import dump_code_names, dump_heap, dump_pass, dump_pointers, dump_regions, dump_smaps
from trace_records import (dump_accounts, dump_end, dump_index, dump_losses, dump_maps, dump_marks,
                           dump_memory, dump_meta, dump_module, dump_origins, dump_threads)
from trace_summary import CODING, Summary
from trace_unwound import Unwound

FILE_MAGIC = b"\xf5MLK\r\n\x1a\n"
CHUNK_MAGIC = b"\xf5CHK\r\n\x1a\n"
FILE_HEADER = struct.Struct("<8sHHIQQIIQQII")
CHUNK_HEADER = struct.Struct("<8sIHHQIIQQQQQIIQII")
STORED_MAX = 4210688
RAW_MAX = 4194304
META, MAPS, MODULE, EVENTS, THREADS, LOSSES, END, INDEX, STACKS, OVERRUNS, UNWOUND, ORIGINS, \
    MEMORY, ACCOUNTS, REGIONS, MARKS, POINTERS, PASS = range(1, 19)
HEAP, SMAPS, CODENAMES, CODE, INTERPRETERS = 20, 22, 23, 24, 25
TYPES = ["", "META", "MAPS", "MODULE", "EVENTS", "THREADS", "LOSSES", "END", "INDEX",
         "STACKS", "OVERRUNS", "UNWOUND", "ORIGINS", "MEMORY", "ACCOUNTS",
         "REGIONS", "MARKS", "POINTERS", "PASS",
         "unknown-19", "HEAP", "unknown-21", "SMAPS", "CODENAMES", "CODE", "INTERPRETERS"]
MODES = ["raw", "filtered", "redacted"]
EVENT_CHUNKS = {EVENTS: Events, STACKS: Stacks, OVERRUNS: Overruns}

DUMPS = {META: dump_meta, MAPS: dump_maps, MODULE: dump_module, THREADS: dump_threads,
         LOSSES: dump_losses, END: dump_end, INDEX: dump_index, ORIGINS: dump_origins,
         ACCOUNTS: dump_accounts, POINTERS: dump_pointers, PASS: dump_pass,
         REGIONS: dump_regions, HEAP: dump_heap, SMAPS: dump_smaps,
         CODENAMES: dump_code_names, CODE: dump_codes,
         INTERPRETERS: dump_interpreter}


def zstd_content_size(frame):
    """The content size that the header of a frame states (RFC 8878, 3.1.1.1), or None."""
    if len(frame) < 5 or frame[:4] != b"\x28\xb5\x2f\xfd":
        return None
    descriptor = frame[4]
    single = descriptor >> 5 & 1
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    size = (single, 2, 4, 8)[descriptor >> 6]
    if not size or len(frame) < at + size:
        return None
    return int.from_bytes(frame[at:at + size], "little") + (256 if size == 2 else 0)


def zstd_frame_length(frame):
    """The bytes of the one frame that begins @frame, the header of which was found to be right."""
    descriptor = frame[4]
    single = descriptor >> 5 & 1
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
    last = 0
    while not last:
        block = int.from_bytes(frame[at:at + 3], "little")
        last = block & 1 or at >= len(frame)
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return at + (4 if descriptor & 4 else 0)


def unzstd(frame, length):
    if zstd_content_size(frame) != length:
        raise Damaged("a frame without, or with another content size")
    if zstd_frame_length(frame) != len(frame):
        raise Damaged("not one frame")
    done = subprocess.run(["zstd", "-dcq", "--memory=%d" % RAW_MAX], input=frame,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode or len(done.stdout) != length:
        raise Damaged("not a zstd frame of %d bytes" % length)
    return done.stdout


class Chunk:
    """A chunk header."""

    def __init__(self, at, fields):
        self.at = at
        (_, _, self.type, self.flags, self.seq, self.stored, self.raw, self.first, self.last,
         *self.lost, self.records, self.crc, _, _, _) = fields

    def line(self):
        name = TYPES[self.type] if 0 < self.type < len(TYPES) else "unknown-%d" % self.type
        return ("chunk 0x%x: %s, seq %d, flags 0x%x, stored %d, raw %d, first %d, last %d, "
                "lost %d %d %d, records %d" % (
                    self.at, name, self.seq, self.flags, self.stored, self.raw, self.first,
                    self.last, *self.lost, self.records))

    def dump(self, stored, full):
        """Yields the lines of the records in the payload @stored."""
        if not 0 < self.type < len(TYPES):
            return
        if zlib.crc32(stored) != self.crc:
            raise Damaged("CRC")
        if self.flags & 1:
            payload = unzstd(stored, self.raw)
        elif len(stored) == self.raw:
            payload = stored
        else:
            raise Damaged("two lengths of a payload that is stored as it is")
        data = Bytes(payload)
        if self.type == UNWOUND:
            yield from Unwound(data, full).dump()
        elif self.type == MEMORY:
            yield from dump_memory(data, self.first)
        elif self.type == MARKS:
            yield from dump_marks(data, self.first)
        elif self.type == EVENTS and data.peek() >> 4 == CODING:
            yield from Summary(data, self.first, self.crc).dump()
        elif self.type in EVENT_CHUNKS:
            events = EVENT_CHUNKS[self.type](data, self.first, full)
            if self.records != events.kind.left():
                note("%d records, not %d" % (events.kind.left(), self.records))
            yield from events.dump()
        else:
            if self.records != 1:
                note("%d records, not 1" % self.records)
            yield from DUMPS[self.type](data)


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:8] != FILE_MAGIC:
            raise Refused("not a trace")
        if len(self.data) < FILE_HEADER.size:
            raise Refused("the file header is cut")
        fields = FILE_HEADER.unpack_from(self.data)
        (_, self.major, self.minor, self.length, self.required, self.optional, self.salt,
         self.mode, self.realtime, self.monotonic, _, crc) = fields
        if self.major > 1 or self.required & ~31:
            raise Refused("a later version")
        if crc != zlib.crc32(self.data[:FILE_HEADER.size - 4]):
            raise Refused("the file header is damaged")
        if self.length < FILE_HEADER.size:
            raise Refused("a file header of %d bytes" % self.length)
        self.chunks = self.lost = self.unknown = self.skipped = 0
        self.ended = False

    def header_line(self):
        mode = MODES[self.mode] if self.mode < len(MODES) else "unknown-%d" % self.mode
        return ("header: version %d.%d, length %d, required 0x%x, optional 0x%x, salt %08x, "
                "stacks %s, realtime %d, monotonic %d" % (
                    self.major, self.minor, self.length, self.required, self.optional, self.salt,
                    mode, self.realtime, self.monotonic))

    def chunk_at(self, at):
        """The whole chunk at the offset @at, or None."""
        if at + CHUNK_HEADER.size > len(self.data):
            return None
        fields = CHUNK_HEADER.unpack_from(self.data, at)
        chunk = Chunk(at, fields)
        header = self.data[at:at + CHUNK_HEADER.size - 4]
        if fields[0] != CHUNK_MAGIC or fields[1] != self.salt or fields[-1] != zlib.crc32(header):
            return None
        if chunk.stored > STORED_MAX or chunk.raw > RAW_MAX:
            return None
        if at + CHUNK_HEADER.size + chunk.stored > len(self.data):
            return None
        return chunk

    def dump(self, full):
        """Yields lines."""
        at, expected = self.length, 0
        yield self.header_line()
        while at < len(self.data):
            chunk = self.chunk_at(at)
            if not chunk:
                start, at = at, self.find_chunk(at + 1)
                self.skipped += at - start
                yield "skipped 0x%x: %d bytes that belong to no whole chunk" % (start, at - start)
                continue
            yield chunk.line()
            self.lost += max(0, chunk.seq - expected)
            expected = chunk.seq + 1 & MASK64
            stored = self.stored(chunk)
            at += CHUNK_HEADER.size + chunk.stored
            try:
                yield from chunk.dump(stored, full)
                self.chunks += 1
                self.unknown += not 0 < chunk.type < len(TYPES)
                self.ended |= chunk.type == END
            except Damaged as why:
                self.lost += 1
                print("trace_reader: chunk at %d: %s" % (chunk.at, why), file=sys.stderr)
                yield "  damaged, stepped over"
        yield "end: chunks %d, lost %d, unknown %d, bytes skipped %d, %s" % (
            self.chunks, self.lost, self.unknown, self.skipped,
            "ended" if self.ended else "not ended")

    def stored(self, chunk):
        start = chunk.at + CHUNK_HEADER.size
        return self.data[start:start + chunk.stored]

    def refuse_without_chunk(self):
        at = self.find_chunk(self.length)
        while at < len(self.data):
            chunk = self.chunk_at(at)
            if zlib.crc32(self.stored(chunk)) == chunk.crc:
                return
            at = self.find_chunk(at + CHUNK_HEADER.size + chunk.stored)
        raise Refused("not one whole chunk")

    def find_chunk(self, at):
        """The offset of the next chunk from @at on, or the file's end."""
        while True:
            at = self.data.find(CHUNK_MAGIC, at)
            if at < 0:
                return len(self.data)
            if self.chunk_at(at):
                return at
            at += 1


def dump(path, full=False):
    """Yields the lines of the dump; raises Refused before the first one."""
    trace = Trace(path)
    trace.refuse_without_chunk()
    yield from trace.dump(full)


def main():
    args = sys.argv[1:]
    full = "--full" in args
    if full:
        args.remove("--full")
    if len(args) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for line in dump(args[0], full):
            sys.stdout.buffer.write(line.encode() + b"\n")
    except Refused as why:
        print("trace_reader: %s" % why, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
