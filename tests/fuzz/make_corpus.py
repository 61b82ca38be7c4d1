#!/usr/bin/env python3
"""make_corpus.py - make the seeds in corpus/ anew: small real things, and hostile ones by hand

usage: make_corpus.py MLEAK SAMPLES     (as root, from anywhere: two samples are recorded)

What the fuzzer found is in corpus/, too (found-*); that is left alone.  Needs gcc, strip, objcopy, zstd.
"""

import glob
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cfi_seeds
from forge import svar, uvar

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
FILE_HEADER, CHUNK_HEADER = 64, 96
META, MAPS, MODULE, EVENTS, THREADS, LOSSES, END, INDEX, STACKS, OVERRUNS, UNWOUND = range(1, 12)
COLUMNS = 14
KIND, THREAD, TIME, ADDR, SIZE, FUNC, ID, FLAGS, REGS, STACK, MASKS, WORDS, NEW, TOP = \
    range(COLUMNS)
COLUMNS_1 = 17  # of coding 1
TIME_HIGH, REG_WORDS, TOP_WORDS = range(COLUMNS, COLUMNS_1)
CODING_1 = 16
COMPRESS, IS_FRAME, RAW_LEN, GAP, REPEAT = 1, 2, 4, 8, 16  # as in fuzz_chunk.c
SALT = 0x11223344


def save(target, name, content):
    with open(os.path.join(CORPUS, target, name), "wb") as out:
        out.write(content)


def text(content):
    return uvar(len(content)) + content


# Traces

def chunks_of(trace):
    """(type, payload) of each chunk of a whole trace."""
    at = FILE_HEADER
    while at < len(trace):
        kind, flags = struct.unpack_from("<HH", trace, at + 12)
        stored, = struct.unpack_from("<I", trace, at + 24)
        payload = trace[at + CHUNK_HEADER:at + CHUNK_HEADER + stored]
        if flags & 1:
            payload = subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE,
                                     check=True).stdout
        yield kind, payload
        at += CHUNK_HEADER + stored


def file_header(salt=SALT, mode=0):
    head = b"\xf5MLK\r\n\x1a\n" + struct.pack("<HHIQQIIQQI", 1, 0, 64, 0, 0, salt, mode, 0, 0, 0)
    return head + struct.pack("<I", zlib.crc32(head))


def chunk(kind, payload, seq=0, flags=0, raw_len=None, stored_len=None):
    head = b"\xf5CHK\r\n\x1a\n" + struct.pack(
        "<IHHQIIQQQQQIIQI", SALT, kind, flags, seq,
        len(payload) if stored_len is None else stored_len,
        len(payload) if raw_len is None else raw_len, 0, 0, 0, 0, 0, 1, zlib.crc32(payload), 0, 0)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def wrapped(kind, payload, how=0, raw_len=0):
    """A payload in the form of fuzz_chunk.c."""
    lie = struct.pack("<I", raw_len) if how & RAW_LEN else b""
    return struct.pack("<BBH", kind, how, len(payload)) + lie + payload


# EVENTS payloads

def payload(columns, mode=0, nr=COLUMNS):
    parts = [columns.get(i, b"") for i in range(max(nr, COLUMNS))]
    return bytes([mode, nr]) + b"".join(uvar(len(p)) for p in parts) + b"".join(parts)


def alloc(columns, sp=0x7ffd00000000, length=64, slices=b"\0", thread=b"\0\7\7"):
    """Append an ALLOC without new words to @columns; the deltas of sp and end are those of a
    thread's first event."""
    for column, content in ((KIND, b"\1"), (THREAD, thread), (TIME, b"\2"), (ADDR, svar(16)),
                            (SIZE, b"\7"), (FUNC, b"\1"), (ID, b"\0"), (FLAGS, b"\0"),
                            (REGS, b"\x11" + svar(sp) + b"\0"),
                            (STACK, svar(sp + length) + (slices if length else b""))):
        columns[column] = columns.get(column, b"") + content


def one_alloc(mode=0, more=None, **how):
    columns = {}
    alloc(columns, **how)
    for column, content in (more or {}).items():
        columns[column] = columns.get(column, b"") + content
    return payload(columns, mode)


def many_threads(nr, length):
    """Events of @nr threads, each of which makes the reader hold @length bytes."""
    columns = {}
    for tid in range(nr):
        alloc(columns, length=length, thread=b"\0\7" + uvar(tid))
    return payload(columns)


def hostile_events():
    yield "empty", b""
    yield "no-columns", bytes([0, 0])
    yield "no-events", payload({})
    yield "few-columns", bytes([0, 13]) + b"\0" * 13
    yield "more-columns", bytes([0, 15]) + b"\0" * 15
    yield "mode-3", payload({}, mode=3)
    yield "column-beyond-end", bytes([0, COLUMNS]) + uvar(1 << 40) + b"\0" * 13
    yield "columns-add-up-to-0", bytes([0, COLUMNS]) + (uvar((1 << 64) - 1) + uvar(1)) * 7
    yield "varint-of-11-bytes", bytes([0, COLUMNS]) + b"\xff" * 10 + b"\1" + b"\0" * 13
    yield "varints-without-end", payload({KIND: b"\1" * 9, THREAD: b"\xff" * 99,
                                          TIME: b"\xff" * 99})
    for name, kind in (("kind-0", 0), ("kind-6", 6), ("kind-bit-6", 0x41), ("nested-exec", 0x25)):
        yield name, payload({KIND: bytes([kind]), THREAD: b"\0\7\7", TIME: b"\0", ADDR: b"\0\0"})
    yield "thread-2-of-1", payload({KIND: b"\2\2", THREAD: b"\0\7\7\2", TIME: b"\0\0",
                                    ADDR: b"\0\2\0\2"})
    yield "thread-id-too-long", payload({KIND: b"\2", THREAD: b"\0" + uvar(1 << 32) + b"\7",
                                         TIME: b"\0", ADDR: b"\0\0"})
    yield "free-of-alloc-2-of-1", one_alloc(more={KIND: b"\2", THREAD: b"\1", TIME: b"\0",
                                                  ADDR: b"\2"})
    yield "plain", one_alloc()
    yield "no-stack", one_alloc(length=0)
    yield "redacted", one_alloc(mode=2)
    yield "filtered", one_alloc(mode=1, more={TOP: bytes(range(64))})
    yield "filtered-top-too-short", one_alloc(mode=1, more={TOP: bytes(63)})
    yield "end-below-sp", one_alloc(length=-8)
    yield "stack-of-64k", one_alloc(length=65536)
    yield "stack-of-64k-and-8", one_alloc(length=65544)
    yield "end-not-aligned", one_alloc(length=63)
    yield "sp-not-aligned", one_alloc(sp=0x7ffd00000003, length=61)
    yield "at-address-0", one_alloc(sp=0, length=256, slices=b"\2\0\0", more={
        MASKS: b"\xff\xff" * 2, WORDS: b"\0" + b"\2" * 31, NEW: b"\x54"})
    for length in (8, 120, 128, 184, 200, 1000):
        for mode in (0, 1):
            yield "at-the-top-of-all-addresses-%d-%d" % (length, mode), one_alloc(
                mode=mode, sp=-length - 8, length=length, slices=b"\1\0",
                more={MASKS: b"\0\x40", WORDS: b"\0", NEW: b"\x54", TOP: bytes(min(length, 128))})
    yield "slices-that-wrap", one_alloc(sp=-65544, length=65536, slices=b"\3\0\x82\4\x82\4",
                                        more={MASKS: b"\0\0" * 3})
    yield "slice-beyond-end", one_alloc(slices=b"\1\1", more={MASKS: b"\1\0"})
    yield "more-slices-than-fit", one_alloc(slices=uvar(515) + b"\0" * 515)
    yield "slices-2-to-the-63", one_alloc(slices=uvar(1 << 63))
    yield "mask-outside-of-stack", one_alloc(length=8, slices=b"\1\0",
                                             more={MASKS: b"\2\0", WORDS: b"\1"})
    yield "word-3-of-2", one_alloc(slices=b"\1\0", more={MASKS: b"\3\0", WORDS: b"\0\3",
                                                         NEW: b"\x54"})
    yield "word-2-to-the-63", one_alloc(slices=b"\1\0", more={MASKS: b"\1\0",
                                                              WORDS: uvar(1 << 63)})
    columns = {}
    alloc(columns)
    for nr in (0, 7, 8, 34, 35, 255):
        columns[REGS] = bytes([nr]) + svar(0x7ffd00000000) + b"\0"
        yield "registers-%d" % nr, payload(columns)
    columns[REGS] = b"\x11" + svar(0x7ffd00000000) + uvar(1 << 7)
    yield "mask-names-sp", payload(columns)
    columns[REGS] = b"\x11" + svar(0x7ffd00000000) + uvar(1 << 17)
    yield "mask-beyond-registers", payload(columns)
    columns[REGS] = b"\x22" + svar(0x7ffd00000000) + uvar((1 << 34) - 1 - (1 << 7))
    columns[WORDS] = b"\0" * 33
    columns[NEW] = b"\1\2\3" * 11
    yield "all-34-registers", payload(columns)
    yield "40-threads-of-64k", many_threads(40, 65536)


def guessed_events():
    """Payloads of coding 1, in which words may be guessed."""
    columns = {}
    alloc(columns, slices=b"\1\0")
    columns.update({REGS: b"\x11" + svar(0x7ffd00000000) + b"\1", MASKS: b"\7\0",
                    REG_WORDS: b"\0", WORDS: b"\4\2\3", NEW: svar(42) + svar(1), TIME_HIGH: b"\0",
                    TOP: b"\x18\0", TOP_WORDS: b"\0\1"})
    for mode in range(3):
        yield "guessed-%d" % mode, payload(columns, mode | CODING_1, COLUMNS_1)
    for name, column, content in (("word-5-of-1", WORDS, b"\5\2\3"),
                                  ("word-2-to-the-64", WORDS, uvar((1 << 64) - 1)),
                                  ("top-of-the-image", TOP, b"\1\0"),
                                  ("top-behind-the-stack", TOP, b"\0\1"),
                                  ("no-time-high", TIME_HIGH, b""), ("kind-9", KIND, b"\x09")):
        yield "guessed-" + name, payload({**columns, column: content}, 1 | CODING_1, COLUMNS_1)
    others = {KIND: b"\6\7\x08", THREAD: b"\0\7\7\1\1", TIME: b"\1\2\3", TIME_HIGH: b"\0\1\2",
              ADDR: b"\0" + svar(4096), SIZE: uvar(1 << 40) + b"\7"}
    yield "unmap-fork-exit", payload(others, CODING_1, COLUMNS_1)


def overruns():
    """Payloads of OVERRUNS chunks: of two blocks, and hostile ones."""
    columns = {}
    alloc(columns)
    alloc(columns, thread=b"\1", sp=0, length=-64, slices=b"")
    events = payload({**columns, TIME_HIGH: b"\0\0"}, CODING_1, COLUMNS_1)
    behind = b"\1" + svar(7) + uvar(5) + uvar(4) + b"\1" + b"\0abcd"
    before = b"\3" + svar(-1) + uvar(1) + uvar(1) + b"\0"
    yield "two", text(behind + before) + events
    yield "one-head-of-two", text(behind) + events
    yield "three-heads-of-two", text(behind * 3) + events
    yield "heads-beyond-the-end", uvar(1 << 40) + behind + before + events
    yield "257-bytes", text((b"\1" + svar(7) + uvar(257) + uvar(0) + b"\1" + bytes(257)) * 2) + events
    yield "more-changed-than-long", text(before[:-2] + uvar(2) + b"\0" + behind) + events
    yield "bytes-beyond-the-heads", text(behind + behind[:-1]) + events
    yield "no-events", text(behind + before)
    yield "a-free", text(behind) + payload({KIND: b"\2", THREAD: b"\0\7\7", TIME: b"\0", TIME_HIGH: b"\0",
                                            ADDR: b"\0\0"}, CODING_1, COLUMNS_1)


def unwound():
    """Payloads of UNWOUND chunks: of two ALLOCs and a FREE, and hostile ones."""
    columns = {}
    alloc(columns)
    alloc(columns, thread=b"\1")
    for column, content in ((KIND, b"\2"), (THREAD, b"\1"), (TIME, b"\1"), (ADDR, b"\1")):
        columns[column] += content
    heads = {c: content for c, content in columns.items() if c < REGS}
    heads = payload({**heads, TIME_HIGH: b"\0\0\0"}, CODING_1, COLUMNS_1)

    def whole(nr=(1, 4, 2), events=heads, **other):
        parts = {"modules": b"\2\1\xab" + text(b"/x") + struct.pack("<Q", 1 << 40),
                 "callers": b"\0\1\1\2", "code": b"\1\0\1",
                 "pcs": svar((1 << 40) + 16) + svar(-1) + svar(64), "flags": b"\0\1\x20\1",
                 "allocs": b"\3\4"}
        parts.update(other)
        return struct.pack("<IQ", 7, 1000) + b"".join(map(uvar, nr)) + bytes([len(parts)]) + b"".join(uvar(len(p)) for p in parts.values()) + b"".join(
                parts.values()) + events

    yield "two", whole()
    yield "no-heads", whole(events=b"")
    yield "whole-events", whole(events=payload({**columns, TIME_HIGH: b"\0\0\0"}, CODING_1, COLUMNS_1))
    yield "a-column-more", whole(later=b"xyz")
    yield "called-by-itself", whole(callers=b"\0\1\3\2")
    yield "module-2-of-1", whole(code=b"\1\0\2")
    yield "stack-5-of-4", whole(allocs=b"\3\5")
    yield "as-last-time-at-first", whole(allocs=b"\0\3")
    yield "2-to-the-40-stacks", whole((1, 1 << 40, 2))
    yield "2-to-the-60-modules", whole((1 << 60, 4, 2))
    yield "fewer-allocs", whole((1, 4, 1))


# Seeds of each target

def seed_events(traces):
    for name, content in (*hostile_events(), *guessed_events()):
        save("events", name, b"\0" + content)
    for label, trace in traces:
        nr = 0
        for kind, content in chunks_of(trace):
            if kind == EVENTS and len(content) < 6000 and nr < 2:
                save("events", "real-%s-%d" % (label, nr), b"\0" + content)
                nr += 1
    plain = {}
    alloc(plain)
    alloc(plain, thread=b"\1", sp=0, length=0)
    save("events", "columns-plain", b"\1\0" + b"".join(
        struct.pack("<H", len(plain.get(i, b""))) + plain.get(i, b"") for i in range(COLUMNS)))
    for top in range(4):
        save("events", "to-encode-%d" % top, bytes([2, top]) + bytes(
            (i * 37 + i // 256 * 11 + top) % 256 for i in range(1500)))


def seed_chunk(traces):
    for label, trace in traces:
        keep, left = [file_header()], 3000
        for seq, (kind, content) in enumerate(chunks_of(trace)):
            if len(content) < left and kind != META:  # META names this machine
                keep.append(chunk(kind, content, seq))
                left -= len(content)
        save("chunk", "real-" + label, b"".join(keep))
    thread = b"\1\7\7\4main"
    whole = file_header() + chunk(THREADS, thread) + chunk(END, b"\1" + bytes(8), 1)
    save("chunk", "example", whole)
    save("chunk", "cut", whole[:-3])
    save("chunk", "garbage-between", file_header() + chunk(THREADS, thread) + b"\xf5CHK\r\n" * 9 +
         chunk(THREADS, thread, 5))
    save("chunk", "other-salt", file_header(salt=1) + chunk(THREADS, thread))
    save("chunk", "header-only", file_header())
    save("chunk", "mode-77", file_header(mode=77) + chunk(THREADS, thread))
    for name, lie in (("stored-beyond-end", {"stored_len": 1 << 20}),
                      ("stored-too-long", {"stored_len": (1 << 32) - 1}),
                      ("raw-too-long", {"raw_len": (4 << 20) + 1}),
                      ("raw-lies", {"raw_len": 1 << 20}), ("seq-2-to-the-64", {"seq": (1 << 64) - 1}),
                      ("flags", {"flags": 0xffff}), ("not-a-frame", {"flags": 1})):
        save("chunk", name, file_header() + chunk(THREADS, thread, **lie) +
             chunk(THREADS, thread, 1))
    save("chunk", "type-9", file_header() + chunk(9, thread) + chunk(THREADS, thread, 1))
    entry = uvar(THREADS) + uvar(FILE_HEADER) + b"\0\0\0\1"
    at = FILE_HEADER + CHUNK_HEADER + len(thread)
    for name, before, entries in (("index", 0, entry), ("index-of-itself", at, entry),
                                  ("index-of-nothing", 0, entry.replace(uvar(FILE_HEADER), b"\x41")),
                                  ("index-too-short", 0, entry[:-1])):
        save("chunk", name, file_header() + chunk(THREADS, thread) + chunk(
            INDEX, uvar(before) + b"\1" + entries, 1) + chunk(
                END, b"\1" + bytes(8) + struct.pack("<Q", at), 2))
    save("chunk", "empty-payloads", file_header() + b"".join(
        chunk(kind, b"", kind) for kind in range(10)))

    for name, content in overruns():
        save("chunk", "overruns-" + name, file_header() + chunk(OVERRUNS, content) +
             chunk(END, b"\1" + bytes(8), 1))
    for name, content in unwound():
        save("chunk", "unwound-" + name, b"\0" + wrapped(UNWOUND, content, 0))

    # As lists of payloads.
    meta = uvar(1) + text(b"server -x") + uvar(9) + text(uvar(4711))
    maps = b"\7" + bytes(8) + b"\1" + uvar(4096) + uvar(4096) + b"\0\5\0\0\0\0" + text(b"/x")
    module = b"\2\1\xab" + text(b"/x") + uvar(100) + b"\0" + uvar(50) + bytes(50)
    save("chunk", "list", b"\0" + b"".join(wrapped(k, p, how) for k, p, how in (
        (META, meta, COMPRESS), (MAPS, maps, 0), (MODULE, module, COMPRESS),
        (THREADS, thread, GAP), (EVENTS, one_alloc(), 0), (LOSSES, b"\3\1\2\3", 0),
        (END, b"\1" + bytes(8), 0))))
    big = 4 << 20
    bomb = subprocess.run(["zstd", "-cq", "--single-thread", "--stream-size=%d" % (64 << 20)],
                          input=bytes(64 << 20), stdout=subprocess.PIPE, check=True).stdout
    save("chunk", "bomb-of-64m", b"\0" + wrapped(EVENTS, bomb, IS_FRAME | RAW_LEN, big))
    save("chunk", "bomb-said-to-be-small", b"\0" + wrapped(EVENTS, bomb, IS_FRAME | RAW_LEN, 100))
    save("chunk", "100m-of-meta", b"\0" + wrapped(
        META, uvar(1) + text(b"a" * 253), COMPRESS | RAW_LEN | REPEAT, big) * 25)
    save("chunk", "4m-of-threads", b"\0" + wrapped(
        EVENTS, b"\0\7\7\0\7\x08\0\7\x09", COMPRESS | RAW_LEN | REPEAT, big))
    save("chunk", "a-million-mappings", b"\0" + wrapped(
        MAPS, b"\7" + bytes(8) + uvar(1 << 20), COMPRESS) + wrapped(
            MAPS, b"\7" + bytes(8) + uvar((1 << 20) + 1), COMPRESS))
    save("chunk", "a-million-threads", b"\0" + wrapped(THREADS, uvar(1 << 20) + b"\1\1\0") +
         wrapped(THREADS, uvar(1 << 62) + b"\1\1\0"))
    save("chunk", "2-to-the-64-losses", b"\0" + wrapped(LOSSES, uvar((1 << 64) - 1) + b"\1" * 99))
    save("chunk", "image-2-to-the-30-and-1", b"\0" + wrapped(
        MODULE, b"\2\1\xab" + text(b"/x") + uvar((1 << 30) + 1) + b"\0\0"))
    save("chunk", "piece-beyond-image", b"\0" + wrapped(
        MODULE, b"\2\1\xab" + text(b"/x") + uvar(9) + uvar((1 << 64) - 1) + b"\2ab"))


MAPS_TEXT = b"""\
55f3e0a00000-55f3e0a02000 r--p 00000000 fe:01 1234   /usr/bin/server
55f3e0a02000-55f3e0a05000 r-xp 00002000 fe:01 1234   /usr/bin/server
55f3e1c00000-55f3e1c21000 rw-p 00000000 00:00 0      [heap]
7f0000000000-7f0000001000 rw-s 00000000 00:05 7      /dev/zero (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]
"""


def seed_maps(traces):
    save("maps", "text", b"\0" + MAPS_TEXT)
    save("maps", "text-and-new-mappings", b"\0" + MAPS_TEXT + b"\n" + b"\n".join((
        b"55f3e0a01000-55f3e0a04000 r-xp 00000000 fe:01 99 /over/two",
        b"7f0000000400-7f0000000800 r-xp 00000000 fe:01 99 /in the middle",
        b"0-ffffffffffffffff ---p 0 0:0 0 all")))
    save("maps", "text-one-line", b"\0" + b"0-1 rwxp 0 0:0 0")
    save("maps", "text-long-path", b"\0" + b"1000-2000 r-xp 0 0:0 1 /" + b"x" * 5000)
    save("maps", "text-numbers-too-long", b"\0" + b"1000-fffffffffffffffffffff r-xp " +
         b"f" * 40 + b" ffffffffff:1 99999999999999999999999 x\n")
    save("maps", "text-minus", b"\0" + b"-1--2 r-xp -3 -4:-5 -6 x\n1000- 2000 x 0 0:0 0\n")
    save("maps", "text-carriage-returns", b"\0" + MAPS_TEXT.replace(b"\n", b"\r\n"))
    save("maps", "text-overlap", b"\0" + b"1000-3000 r-xp 0 0:0 1 a\n2000-4000 r-xp 0 0:0 1 b\n")
    entry = uvar(4096) + uvar(4096) + b"\0\5\0\0\0\0" + text(b"/x")
    names = {MAPS: 6, THREADS: 1, META: 2, LOSSES: 3, MODULE: 4, END: 5}

    def one(name, kind, content):
        save("maps", name, bytes([names[kind]]) + content)
    one("maps-two", MAPS, b"\7" + bytes(8) + b"\2" + entry * 2)
    one("maps-count-lies", MAPS, b"\7" + bytes(8) + uvar(1 << 20) + entry)
    one("maps-beyond-all", MAPS, b"\7" + bytes(8) + b"\2" + uvar((1 << 64) - 1) + b"\1" +
        entry[4:] + entry)
    one("maps-id-of-33", MAPS, b"\7" + bytes(8) + b"\1" + entry[:8] + b"\x21" + bytes(33) + b"\0")
    one("maps-path-of-4097", MAPS, b"\7" + bytes(8) + b"\1" + entry[:9] + text(b"x" * 4097))
    one("maps-nul-in-path", MAPS, b"\7" + bytes(8) + b"\1" + entry[:9] + text(b"a\0b"))
    one("threads", THREADS, b"\2\7\7\4main\7\x08\6worker")
    one("threads-many", THREADS, uvar(100) + b"\1\1\0" * 100)
    one("threads-count-lies", THREADS, uvar(1 << 20) + b"\1\1\0")
    one("meta", META, b"".join(uvar(tag) + text(b"text") for tag in range(1, 9)) +
        uvar(9) + text(uvar(4711)) + uvar(99) + text(b"of a later version"))
    one("meta-no-pid", META, uvar(1) + text(b"a" * 4096))
    one("meta-number-of-0-bytes", META, uvar(9) + text(b""))
    one("meta-unknown-and-long", META, uvar(99) + text(b"x" * 5000) + uvar(9) + text(b"\7"))
    one("losses", LOSSES, uvar(10) + bytes(range(10)))
    one("losses-more", LOSSES, uvar(12) + bytes(range(12)))
    one("losses-overflow", LOSSES, uvar(12) + uvar((1 << 64) - 1) * 12)
    one("module", MODULE, b"\2\1\xab" + text(b"/x") + uvar(3) + b"\0" + text(b"abc"))
    one("end", END, b"\1" + bytes(8))
    for label, trace in traces:
        for kind, content in chunks_of(trace):
            if kind in names and kind != META and len(content) < 3000:
                one("real-%s-%d" % (label, kind), kind, content)


LIBRARY = """
void *malloc(unsigned long n) { static char room[64]; return n < 64 ? room : 0; }
void free(void *p) { static int n; n += p != 0; }
void *calloc(unsigned long n, unsigned long m) { return malloc(n * m); }
extern void other(void *);
__attribute__((noinline)) void with_frame(long *v, int n) { char b[200]; v[n] = 1; other(b); other(v); }
__asm__(".globl _ZN3foo3barEi\\n.type _ZN3foo3barEi,@function\\n_ZN3foo3barEi: ret\\n"
        ".size _ZN3foo3barEi,.-_ZN3foo3barEi");
"""


def build(folder, name, *flags):
    out = os.path.join(folder, name)
    source = os.path.join(folder, "library.c")
    with open(source, "w") as file:
        file.write(LIBRARY)
    subprocess.run(["gcc", "-Os", "-fPIC", "-shared", "-nostdlib", "-Wl,-z,noseparate-code",
                    "-Wl,-z,norelro", "-Wl,--build-id=0x0123456789abcdef", "-o", out, *flags,
                    source], check=True, cwd=folder)
    with open(out, "rb") as file:
        return file.read()


def patched(image, offset, form, value):
    image = bytearray(image)
    struct.pack_into(form, image, offset, value)
    return bytes(image)


def seed_module(folder):
    plain = build(folder, "plain", "-Wl,-s")
    save("module", "stripped", plain)
    save("module", "symbols", build(folder, "symbols"))
    save("module", "debug", build(folder, "debug", "-g1", "-gz=none"))
    save("module", "debug-compressed", build(folder, "debugz", "-g1", "-gz=zlib"))
    save("module", "debug-frame", build(folder, "frame", "-g1", "-fno-asynchronous-unwind-tables",
                                        "-Wl,--no-eh-frame-hdr"))
    save("module", "sysv-hash", build(folder, "sysv", "-Wl,-s", "-Wl,--hash-style=sysv"))
    save("module", "empty", b"")
    save("module", "header-only", plain[:64])
    save("module", "cut", plain[:len(plain) // 2])
    save("module", "32-bit", patched(plain, 4, "B", 1))
    save("module", "big-endian", patched(plain, 5, "B", 2))
    save("module", "arm", patched(plain, 18, "<H", 183))
    save("module", "relocatable", patched(plain, 16, "<H", 1))
    phoff, shoff = struct.unpack_from("<QQ", plain, 32)
    phnum, _, shnum, names = struct.unpack_from("<HHHH", plain, 56)
    save("module", "program-headers-beyond-end", patched(plain, 32, "<Q", 1 << 62))
    save("module", "sections-beyond-end", patched(plain, 40, "<Q", len(plain) - 1))
    save("module", "65535-program-headers", patched(plain, 56, "<H", 0xffff))
    save("module", "65535-sections", patched(patched(plain, 60, "<H", 0), shoff + 32, "<Q",
                                              0xffffffff))
    save("module", "names-are-no-section", patched(plain, 62, "<H", shnum + 3))
    save("module", "load-wraps", patched(patched(plain, phoff + 8, "<Q", (1 << 64) - 1),
                                         phoff + 32, "<Q", (1 << 64) - 1))
    for i in range(shnum):
        at = shoff + 64 * i
        kind, = struct.unpack_from("<I", plain, at + 4)
        if kind in (11, 7, 3) or i == names - 2:  # SHT_DYNSYM, SHT_NOTE, SHT_STRTAB
            save("module", "section-%d-too-long" % i, patched(plain, at + 32, "<Q", 1 << 40))
            save("module", "section-%d-of-entries-of-1" % i, patched(plain, at + 56, "<Q", 1))
            save("module", "section-%d-linked-to-itself" % i, patched(plain, at + 40, "<I", i))


# Whole unwinds

def capture(folder, *flags):
    """The seed program's image, and the registers and the stack that it wrote."""
    path = os.path.join(folder, "seed")
    subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-Wl,-z,noseparate-code",
                    "-Wl,--build-id=none", "-Wl,-z,norelro", "-Wl,--eh-frame-hdr", "-s", *flags, "-o", path,
                    os.path.join(os.path.dirname(CORPUS), "capture_seed.S")], check=True)
    out = subprocess.run([path], stdout=subprocess.PIPE, env={}, check=True).stdout
    with open(path, "rb") as file:
        return file.read(), out[:136], out[136:]


def unwinding(regs, stack, image, flags=0):
    """As fuzz_capture.c takes it: the image stands at 4 MiB, where it was linked to."""
    return struct.pack("<BH", flags, len(stack)) + regs + stack + image


def seed_capture(folder):
    image, regs, stack = capture(folder)
    save("capture", "all-frames", unwinding(regs, stack, image))
    save("capture", "stack-cut", unwinding(regs, stack[:192], image, 2))
    save("capture", "no-stack", unwinding(regs, b"", image))
    save("capture", "stack-of-zeros", unwinding(regs, bytes(len(stack)), image, 4))
    save("capture", "stack-of-itself", unwinding(regs, regs[56:64] * 64, image))
    for flags, name in ((("-Wl,--no-eh-frame-hdr",), "no-header"), (("-DENDLESS",), "endless")):
        image, regs, stack = capture(folder, *flags)
        save("capture", name, unwinding(regs, stack, image))


INLINED = """
static inline __attribute__((always_inline)) void *inner(unsigned long n) { return other(n + 1); }
static inline __attribute__((always_inline)) void *middle(unsigned long n) { return inner(2 * n); }
void *calls(unsigned long n) { char *p = middle(n); return p ? p + 1 : 0; }
void *many(unsigned long n) { return calls(n) ? middle(n + 3) : inner(n); }
"""


def with_section(folder, name, section, content):
    """The stripped library with one section more."""
    for file, data in (("extra", content), ("base", build(folder, "plain", "-Wl,-s"))):
        with open(os.path.join(folder, file), "wb") as out:
            out.write(data)
    subprocess.run(["objcopy", "--add-section", section + "=extra", "base", name], check=True,
                   cwd=folder)
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def seed_debug_forms(folder):
    """What names are read from, in all its forms."""
    global LIBRARY
    plain, LIBRARY = LIBRARY, LIBRARY.replace("other(void", "other2(void").replace(
        "other(", "other2(") + "extern void *other(unsigned long);" + INLINED
    for name, flags in (("debug-inlined", ["-O2", "-g", "-gz=none"]),
                        ("debug-inlined-v4", ["-O2", "-gdwarf-4", "-gz=none"]),
                        ("debug-split", ["-O2", "-gsplit-dwarf", "-gz=none"])):
        image = build(folder, name, *flags)
        save("module", name, image)
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", "debug-inlined", "zstd"],
                   check=True, cwd=folder)
    with open(os.path.join(folder, "zstd"), "rb") as file:
        zstd = file.read()
    save("module", "debug-zstd", zstd)
    frames = [i for i in range(len(zstd)) if zstd.startswith(b"\x28\xb5\x2f\xfd", i)]
    save("module", "debug-zstd-damaged", patched(zstd, frames[0] + 12, "<I", 0xffffffff))
    save("module", "debug-zstd-said-to-be-1g", patched(zstd, frames[0] - 16, "<Q", 1 << 30))
    save("module", "debug-zstd-said-to-be-short", patched(zstd, frames[0] - 16, "<Q", 3))
    LIBRARY = plain
    build(folder, "symbols")
    subprocess.run(["objcopy", "-S", "-w", "--keep-symbol=*", "symbols", "mini"], check=True,
                   cwd=folder)
    with open(os.path.join(folder, "mini"), "rb") as file:
        mini = lzma.compress(file.read())
    save("module", "minidebug", with_section(folder, "m", ".gnu_debugdata", mini))
    save("module", "minidebug-cut", with_section(folder, "m", ".gnu_debugdata", mini[:-40]))
    save("module", "minidebug-bomb", with_section(folder, "m", ".gnu_debugdata",
                                                  lzma.compress(bytes(32 << 20))))
    link = b"/nonexistent/common.debug\0" + bytes(range(20))
    with open(os.path.join(folder, "extra"), "wb") as file:
        file.write(link)
    subprocess.run(["objcopy", "--add-section", ".gnu_debugaltlink=extra", "debug-inlined", "alt"],
                   check=True, cwd=folder)
    with open(os.path.join(folder, "alt"), "rb") as file:
        alt = file.read()
    save("module", "debug-altlink", alt)


def record(mleak, sample, folder, *options):
    trace = os.path.join(folder, "x.mlk")
    subprocess.run([mleak, "record", "-o", trace, *options, "--", sample], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(trace, "rb") as file:
        return file.read()


def main():
    mleak, samples = (os.path.abspath(arg) for arg in sys.argv[1:3])
    for target in ("capture", "chunk", "events", "maps", "module"):
        os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
        for old in glob.glob(os.path.join(CORPUS, target, "*")):
            if not os.path.basename(old).startswith("found-"):
                os.remove(old)
    with tempfile.TemporaryDirectory() as folder:
        traces = [(name, record(mleak, os.path.join(samples, name), folder, "--stack-size", "256"))
                  for name in ("first", "single")]
        seed_events(traces)
        seed_chunk(traces)
        seed_maps(traces)
        seed_module(folder)
        seed_capture(folder)
        seed_debug_forms(folder)
    cfi_seeds.make()


if __name__ == "__main__":
    main()
