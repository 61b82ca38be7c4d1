"""event_seeds.py - make the seeds of fuzz_events, and payloads with events; part of make_corpus.py"""

import struct

from forge import svar, uvar
from seeds import EVENTS, chunks_of, save, text

COLUMNS = 14
KIND, THREAD, TIME, ADDR, SIZE, FUNC, ID, FLAGS, REGS, STACK, MASKS, WORDS, NEW, TOP = \
    range(COLUMNS)
COLUMNS_1 = 17  # of coding 1
TIME_HIGH, REG_WORDS, TOP_WORDS = range(COLUMNS, COLUMNS_1)
CODING_1, CODING_3, CODING_4 = 16, 48, 64


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
                                  ("no-time-high", TIME_HIGH, b""), ("kind-9", KIND, b"\x09"),
                                  ("kind-10", KIND, b"\x0a")):
        yield "guessed-" + name, payload({**columns, column: content}, 1 | CODING_1, COLUMNS_1)
    others = {KIND: b"\6\7\x08", THREAD: b"\0\7\7\1\1", TIME: b"\1\2\3", TIME_HIGH: b"\0\1\2",
              ADDR: b"\0" + svar(4096), SIZE: uvar(1 << 40) + b"\7"}
    yield "unmap-fork-exit", payload(others, CODING_1, COLUMNS_1)
    pages = {KIND: b"\x09\x09\x09", THREAD: b"\0\7\7\1\1", TIME: b"\1\2\3", TIME_HIGH: b"\0\1\2",
             ADDR: (b"\0" + svar(4096)) * 3, SIZE: uvar(4096) * 2 + uvar((1 << 64) - 1), FUNC: b"\1\4\xff"}
    yield "pages", payload(pages, CODING_1, COLUMNS_1)


def expected_events():
    """Payloads of coding 3: blocks that come back, and words that came lately."""
    columns = {}
    for i in range(4):
        alloc(columns, thread=b"\1" if i else b"\0\7\7", length=0)
    for column in (THREAD, TIME):
        columns[column] += b"\1"
    columns.update({KIND: b"\1\x41\2\x41\x81", ADDR: svar(4096) + b"\2",
                    REGS: b"\x11\0\3" * 4, STACK: b"\0" * 4,
                    TIME_HIGH: b"\0" * 5, REG_WORDS: b"\0\4\5\6\7\x7c\x7d\x7e",
                    NEW: svar(42) + svar(-8)})
    for mode in range(3):
        yield "expected-%d" % mode, payload(columns, mode | CODING_3, COLUMNS_1)
    for name, column, content in (("word-7-of-6", REG_WORDS, b"\0\4\5\6\7\x7c\x7d\x7f"),
                                  ("both-places", KIND, b"\1\xc1\2\x41\x81"),
                                  ("place-of-a-free", KIND, b"\1\x41\x42\x41\x81"),
                                  ("no-new-words", NEW, b"")):
        yield "expected-" + name, payload({**columns, column: content}, CODING_3, COLUMNS_1)


def told_by_distances():
    """Payloads of coding 4: pointers into the stack, also where that is near the mark."""
    for name, sp in (("program", 0x7ffd00000000), ("mark", 0xc00000000000), ("kernel", -65536),
                     ("nothing", 0)):
        columns = {}
        alloc(columns, sp=sp, slices=b"\1\0")
        columns.update({MASKS: b"\x3f\0", WORDS: b"\0\0\0\2\3\5", TIME_HIGH: b"\0", TOP: b"\0\0",
                        NEW: svar(0xc00000000008) + svar(sp - 0xc00000000008) + svar(-sp)})
        for mode in range(3):
            yield "near-%s-%d" % (name, mode), payload(columns, mode | CODING_4, COLUMNS_1)


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


def seed_events(traces):
    for name, content in (*hostile_events(), *guessed_events(), *expected_events(),
                          *told_by_distances()):
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
