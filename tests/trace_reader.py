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

FILE_MAGIC = b"\xf5MLK\r\n\x1a\n"
CHUNK_MAGIC = b"\xf5CHK\r\n\x1a\n"
FILE_HEADER = struct.Struct("<8sHHIQQIIQQII")
CHUNK_HEADER = struct.Struct("<8sIHHQIIQQQQQIIQII")
STORED_MAX = 4210688
RAW_MAX = 4194304
STRING_MAX = 4096
ID_MAX = 32
STACK_MAX = 65536
IMAGE_MAX = 131072  # of a thread's stack
ALL_IMAGES_MAX = 134217728
MODULE_MAX = 1 << 30
MAPPINGS_MAX = 1048576
THREADS_MAX = 1048576
CHUNK_THREADS_MAX = (65536, 4096)  # by coding
BLOCK = 128  # what a slice is cut out of
TOP_WORDS = 16
SP = 7  # DWARF number of the stack pointer
MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1

META, MAPS, MODULE, EVENTS, THREADS, LOSSES, END, INDEX = range(1, 9)
TYPES = ["", "META", "MAPS", "MODULE", "EVENTS", "THREADS", "LOSSES", "END", "INDEX"]
MODES = ["raw", "filtered", "redacted"]
RAW, FILTERED, REDACTED = range(3)
ALLOC, FREE, RELEASE, RESTORE, EXEC, UNMAP, FORK, EXIT = range(1, 9)
KINDS = ["", "ALLOC", "FREE", "RELEASE", "RESTORE", "EXEC", "UNMAP", "FORK", "EXIT"]
FUNCS = ["", "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc",
         "pvalloc", "reallocarray", "mmap", "mremap", "new", "new[]"]
META_TEXTS = ["", "command", "exe", "comm", "hostname", "kernel", "machine", "recorder", "backend"]
META_NUMBERS = {9: "tgid", 10: "stack_limit", 11: "whole_life", 12: "sample_every", 13: "sample_bytes",
                14: "min_size", 15: "max_size", 16: "trigger_bytes", 17: "ring_size"}
NO_ADDRESS = (EXEC, FORK, EXIT)
LOSS_NAMES = ["allocs", "frees", "releases", "restores", "returns", "states", "pointers", "execs",
              "maps", "modules", "unmaps"]
SKIP_NAMES = ["size", "sample", "trigger", "delay"]


class Refused(Exception):
    """The file as a whole cannot be read."""


class Damaged(Exception):
    """The payload of a chunk is not what the specification says."""


def note(text):
    """Tell of what no writer does, though a reader may read on."""
    print("trace_reader: note: " + text, file=sys.stderr)


class Bytes:
    """Bytes read from the beginning to the end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        if length > self.left():
            raise Damaged("%d bytes wanted, %d left" % (length, self.left()))
        self.at += length
        return self.data[self.at - length:self.at]

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def uvar(self):
        value = 0
        for i in range(10):
            byte = self.u8()
            value |= (byte & 0x7f) << (7 * i)
            if not byte & 0x80:
                if value > MASK64:
                    raise Damaged("a uvar of more than 64 bits")
                return value
        raise Damaged("a uvar of more than 10 bytes")

    def uvar32(self):
        value = self.uvar()
        if value > MASK32:
            raise Damaged("a number of more than 32 bits")
        return value

    def svar(self):
        """As a number modulo 2^64: it is always added to something."""
        value = self.uvar()
        return (value >> 1) ^ (MASK64 if value & 1 else 0)

    def str(self):
        length = self.uvar()
        if length > STRING_MAX:
            raise Damaged("a str of %d bytes" % length)
        text = self.take(length)
        if b"\0" in text:
            raise Damaged("a str with a NUL")
        return text

    def id(self):
        length = self.u8()
        if length > ID_MAX:
            raise Damaged("an id of %d bytes" % length)
        return self.take(length)

    def end(self):
        if self.left():
            note("%d bytes too many" % self.left())


# Text

UNSAFE = [(0x80, 0x9f), (0xad, 0xad), (0x61c, 0x61c), (0x180e, 0x180e), (0x200b, 0x200f),
          (0x2028, 0x202e), (0x2060, 0x206f), (0xfeff, 0xfeff), (0xfff9, 0xfffb),
          (0xfffe, 0xffff), (0xe0000, 0xe007f)]


def escape(text):
    """The bytes @text as report/text.h says that names are printed."""
    out = []
    for c in map(ord, text.decode(errors="surrogateescape")):
        if 0xdc80 <= c <= 0xdcff:
            out.append("\\x%02X" % (c - 0xdc00))
        elif c < 0x20 or c == 0x7f:
            out.append("\\x%02X" % c)
        elif any(first <= c <= last for first, last in UNSAFE):
            out.append("\\u{%X}" % c)
        else:
            out.append(chr(c))
    return "".join(out)


# The chunks' contents: each function takes a Bytes and gives lines, and raises Damaged

def dump_meta(data):
    texts, numbers = {}, {}
    while data.left():
        tag = data.uvar()
        content = data.take(data.uvar())
        if tag in META_NUMBERS:
            field = Bytes(content)
            numbers[tag] = field.uvar()
            field.end()
        elif 0 < tag < len(META_TEXTS):
            if b"\0" in content:
                note("a META text with a NUL, where it is cut")
            texts[tag] = content.split(b"\0")[0]
    lines = ["  %s %s" % (name, escape(texts.get(tag, b"")))
             for tag, name in enumerate(META_TEXTS) if tag]
    return lines + ["  %s %d" % (name, numbers.get(tag, 0)) for tag, name in META_NUMBERS.items()]


def dump_maps(data):
    tgid, time, count = data.uvar32(), data.u64(), data.uvar()
    if count > MAPPINGS_MAX:
        raise Damaged("%d mappings" % count)
    lines = ["  MAPS tgid %d, time %d, mappings %d" % (tgid, time, count)]
    end = 0
    for _ in range(count):
        start = end + data.uvar()
        end = start + data.uvar()
        if end > MASK64:
            raise Damaged("a mapping beyond the address space")
        offset, perms = data.uvar(), data.u8()
        major, minor, inode = data.uvar32(), data.uvar32(), data.uvar()
        ident, path = data.id(), data.str()
        letters = "".join(letter if perms & bit else "-" for bit, letter in
                          ((1, "r"), (2, "w"), (4, "x")))
        lines.append("    %x-%x %s%s %x %x:%x %d id %s path %s" % (
            start, end, letters, "s" if perms & 8 else "p", offset, major, minor, inode,
            ident.hex() or "-", escape(path)))
    data.end()
    return lines


def dump_module(data):
    ident, path = data.id(), data.str()
    if not ident:
        raise Damaged("a module without id")
    image, offset = data.uvar(), data.uvar()
    piece = data.take(data.uvar())
    data.end()
    if image > MODULE_MAX or offset + len(piece) > image:
        raise Damaged("a piece beyond its image")
    return ["  MODULE id %s, image %d, offset %d, length %d, crc %08x, path %s" % (
        ident.hex(), image, offset, len(piece), zlib.crc32(piece), escape(path))]


def dump_threads(data):
    count = data.uvar()
    if count > THREADS_MAX:
        raise Damaged("%d threads" % count)
    for _ in range(count):
        tgid, tid = data.uvar32(), data.uvar32()
        yield "  THREAD tgid %d, tid %d, name %s" % (tgid, tid, escape(data.str()))
    data.end()


def counts(data, names):
    """As many counts as there are @names: those missing are 0, those too many are added to the last."""
    found = [data.uvar() for _ in range(data.uvar())] if data.left() else []
    if len(found) > len(names):
        note("kinds of losses that are not known are added to the last one that is")
        found[len(names) - 1:] = [sum(found[len(names) - 1:])]
    return ", ".join("%s %d" % pair for pair in zip(names, found + [0] * len(names)))


def dump_losses(data):
    if not data.left():
        raise Damaged("no losses")
    lines = ["  LOSSES " + counts(data, LOSS_NAMES), "  SKIPPED " + counts(data, SKIP_NAMES)]
    data.end()
    return lines


def dump_end(data):
    reason, time = data.u8(), data.u64()
    if data.left():
        data.u64()  # where the INDEX chunk is
    data.end()
    return ["  END reason %d, time %d" % (reason, time)]


def dump_index(data):
    data.uvar()  # the INDEX chunk before
    offset = seq = first = 0
    for _ in range(data.uvar()):
        kind = data.uvar()
        if kind > 65535:
            raise Damaged("a type of more than 16 bits")
        offset = offset + data.uvar() & MASK64
        seq = seq + data.uvar() & MASK64
        first = first + data.svar() & MASK64
        last = first + data.svar() & MASK64
        yield "  ENTRY 0x%x, type %d, seq %d, first %d, last %d, records %d" % (
            offset, kind, seq, first, last, data.uvar32())
    data.end()


# EVENTS

class Image:
    """The bytes of a range of addresses: 4.4.3."""

    def __init__(self):
        self.start = self.end = 0
        self.bytes = bytearray()

    def grow(self, lo, end):
        """Rules 1 and 2."""
        start, stop = min(lo, self.start), max(end, self.end)
        apart = end < self.start or lo > self.end
        if not self.bytes or apart or stop - start > IMAGE_MAX:
            self.start, self.end, self.bytes = lo, end, bytearray(end - lo)
            return
        self.bytes = bytes(self.start - start) + self.bytes + bytes(stop - self.end)
        self.bytes = bytearray(self.bytes)
        self.start, self.end = start, stop

    def get(self, addr):
        return int.from_bytes(self.bytes[addr - self.start:addr - self.start + 8], "little")

    def put(self, addr, word):
        self.bytes[addr - self.start:addr - self.start + 8] = word.to_bytes(8, "little")


class Thread:
    def __init__(self, tgid, tid):
        self.tgid, self.tid = tgid, tid
        self.regs = {}
        self.sp = self.end = 0
        self.image = Image()


def hash_of(a, b, bits):
    mixed = (a * 0x9e3779b97f4a7c15 & MASK64) ^ b
    return (mixed * 0xbf58476d1ce4e5b9 & MASK64) >> (64 - bits)


class Events:
    """The decoder of one EVENTS chunk."""

    COLUMNS = (14, 17)  # by coding

    def __init__(self, data, first_time, full):
        mode = data.u8()
        self.mode, self.coding = mode & 15, mode >> 4
        if self.mode > REDACTED or self.coding > 1:
            raise Damaged("stacks of an unknown mode or coding")
        known = self.COLUMNS[self.coding]
        lengths = [data.uvar() for _ in range(data.u8())]
        if len(lengths) < known:
            raise Damaged("only %d columns" % len(lengths))
        if len(lengths) > known:
            note("%d columns" % len(lengths))
            del lengths[known:]
        columns = [Bytes(data.take(length)) for length in lengths]
        data.end()
        (self.kind, self.thread, self.time, self.address, self.size, self.function, self.id,
         self.flags, self.registers, self.stack, self.masks, self.words, self.new_words,
         self.top, self.time_high, self.register_words, self.top_words) = (
             columns + [Bytes(b"")] * 3)[:17]
        self.columns = columns
        self.full = full
        self.threads = []
        self.previous_time = first_time
        self.previous_address = 0
        self.previous_id = 0
        self.allocs = []  # addresses
        self.dictionary = []
        self.beside, self.place, self.shown = {}, {}, {}
        self.word_before = self.pc = 0
        self.previous_word = 0
        self.images_size = 0

    def dump(self):
        while self.kind.left():
            yield from self.record()
        for column in self.columns:
            column.end()

    def record(self):
        kind = self.kind.u8()
        nested, kind = kind & 0x20, kind & ~0x20
        if not ALLOC <= kind <= (EXIT if self.coding else EXEC) or (nested and kind != FREE):
            raise Damaged("no such kind of record")
        thread = self.next_thread()
        delta = self.time.u8() + (self.time_high.svar() << 8) if self.coding else self.time.svar()
        self.previous_time = (self.previous_time + delta) & MASK64
        if kind == ALLOC:
            self.previous_address = (self.previous_address + self.address.svar()) & MASK64
            self.allocs.append(self.previous_address)
        elif kind not in NO_ADDRESS:
            self.previous_address = self.next_freed()
        size = self.size.uvar() if kind == UNMAP else 0
        parent = self.size.uvar32() if kind == FORK else 0
        flags = self.flags.uvar32() if kind == ALLOC else 0
        lines = ["  %s flags %s, tgid %d, tid %d, time %d, addr 0x%x" % (
            KINDS[kind], "nested" if nested else "0x%x" % flags, thread.tgid, thread.tid,
            self.previous_time, parent if kind in NO_ADDRESS else self.previous_address)]
        if kind == UNMAP:
            lines[0] += ", size %d" % size
        if kind == ALLOC:
            text, more = self.allocation(thread)
            lines[0] += text
            lines += more
        return lines

    def next_thread(self):
        number = self.thread.uvar()
        if number == 0:
            if len(self.threads) >= CHUNK_THREADS_MAX[self.coding]:
                raise Damaged("too many threads")
            thread = Thread(self.thread.uvar32(), self.thread.uvar32())
            self.threads.append(thread)
            return thread
        if number > len(self.threads):
            raise Damaged("no thread %d yet" % number)
        return self.threads[number - 1]

    def next_freed(self):
        back = self.address.uvar()
        if back == 0:
            return (self.previous_address + self.address.svar()) & MASK64
        if back > len(self.allocs):
            raise Damaged("no %d ALLOCs yet" % back)
        return self.allocs[-back]

    def numbered_word(self, number, first):
        if number == 0:
            self.previous_word = (self.previous_word + self.new_words.svar()) & MASK64
            self.dictionary.append(self.previous_word)
            return self.previous_word
        if not first <= number < first + len(self.dictionary):
            raise Damaged("no word %d yet" % number)
        return self.dictionary[number - first]

    def next_word(self, column, place):
        if not self.coding:
            number = self.words.uvar()
            return 0 if number == 1 else self.numbered_word(number, 2)
        beside, by_place = hash_of(place, self.word_before, 16), hash_of(place, self.pc, 16)
        number = column.uvar()
        if number == 1:
            word = 0
        elif number == 2:
            word = self.beside.get(beside, 0)
        elif number == 3:
            word = self.place.get(by_place, 0)
        else:
            word = self.numbered_word(number, 4)
        self.beside[beside] = self.place[by_place] = self.word_before = word
        return word

    def allocation(self, thread):
        size, func = self.size.uvar(), self.function.u8()
        name = FUNCS[func] if 1 <= func < len(FUNCS) else "unknown-%d" % func
        self.previous_id = (self.previous_id + 1 + self.id.svar()) & MASK64
        regs = self.next_registers(thread)
        stack = self.next_stack(thread)
        text = ", size %d, func %s, id %d, regs %s, stack %d, crc %08x" % (
            size, name, self.previous_id, " ".join("%x" % reg for reg in regs), len(stack),
            zlib.crc32(stack))
        more = []
        if self.full:
            more = ["    %016x %s" % (thread.sp + at, stack[at:at + 32].hex())
                    for at in range(0, len(stack), 32)]
        return text, more

    def next_registers(self, thread):
        count = self.registers.u8()
        if not 8 <= count <= 34:
            raise Damaged("%d registers" % count)
        thread.sp = (thread.sp + self.registers.svar()) & MASK64
        mask = self.registers.uvar()
        if mask >> count or mask >> SP & 1:
            raise Damaged("a mask of registers that are not there")
        for number in range(count):
            if mask >> number & 1:
                thread.regs[number] = self.next_word(self.register_words, number)
        thread.regs[SP] = thread.sp
        self.pc = thread.regs.get(count - 1, 0)
        return [thread.regs.get(number, 0) for number in range(count)]

    def next_stack(self, thread):
        sp = thread.sp
        end = thread.end = (thread.end + self.stack.svar()) & MASK64
        if not sp <= end <= sp + STACK_MAX:
            raise Damaged("a stack that ends at %x" % end)
        if end == sp:
            return b""
        if end % 8:
            raise Damaged("a stack that ends at %x" % end)
        lo, image = sp & ~7, thread.image
        self.images_size -= len(image.bytes)
        image.grow(lo, end)
        self.images_size += len(image.bytes)
        if self.images_size > ALL_IMAGES_MAX:
            raise Damaged("too much stack")
        self.change_slices(image, lo, end)
        stack = image.bytes[lo - image.start:end - image.start]
        if self.mode == FILTERED:
            self.show_top(stack, lo)
        return bytes(stack[sp - lo:])

    def show_top(self, stack, lo):
        """Put the first words, as they were, into the bytes @stack of the image from @lo on."""
        count = min(len(stack) // 8, TOP_WORDS)
        mask = self.top.u16() if self.coding else 0
        if mask >> count:
            raise Damaged("words of the top behind the stack")
        for i in range(count):
            addr = lo + 8 * i
            kept = int.from_bytes(stack[8 * i:8 * i + 8], "little")
            word = 0 if self.coding else self.top.u64()
            if word and kept:
                note("a word of the top that is in the image, too")
            if mask >> i & 1:
                if kept:
                    raise Damaged("a word of the top that is in the image, too")
                word = self.next_word(self.top_words, 16384 + i)
                self.shown[hash_of(addr // 8, 0, 13)] = word
            elif self.coding:
                word = self.shown.get(hash_of(addr // 8, 0, 13), 0)
            stack[8 * i:8 * i + 8] = (kept or word).to_bytes(8, "little")

    def change_slices(self, image, lo, end):
        block = lo // BLOCK
        for _ in range(self.stack.uvar()):
            block += self.stack.uvar()
            if block * BLOCK >= end:
                raise Damaged("a slice behind the stack")
            mask = self.masks.u16()
            for i in range(16):
                if mask >> i & 1:
                    addr = block * BLOCK + 8 * i
                    if not lo <= addr < end:
                        raise Damaged("a word outside of the stack")
                    image.put(addr, self.next_word(self.words, 64 + (addr - lo) // 8))
            block += 1


DUMPS = {META: dump_meta, MAPS: dump_maps, MODULE: dump_module, THREADS: dump_threads,
         LOSSES: dump_losses, END: dump_end, INDEX: dump_index}


# The file

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
        name = TYPES[self.type] if META <= self.type <= INDEX else "unknown-%d" % self.type
        return ("chunk 0x%x: %s, seq %d, flags 0x%x, stored %d, raw %d, first %d, last %d, "
                "lost %d %d %d, records %d" % (
                    self.at, name, self.seq, self.flags, self.stored, self.raw, self.first,
                    self.last, *self.lost, self.records))

    def dump(self, stored, full):
        """Yields the lines of the records in the payload @stored."""
        if not META <= self.type <= INDEX:
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
        if self.type == EVENTS:
            events = Events(data, self.first, full)
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
        if self.major > 1 or self.required & ~1:
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
                self.unknown += not META <= chunk.type <= INDEX
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
