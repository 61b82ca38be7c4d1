"""The chunks but EVENTS, for trace_reader.py: written from doc/trace-format.md alone."""

import zlib

from trace_bytes import MASK64, Bytes, Damaged, escape, note

MODULE_MAX = 1 << 30
MAPPINGS_MAX = 1048576
THREADS_MAX = 1048576
MEMORY_VALUES = 20
META_TEXTS = ["", "command", "exe", "comm", "hostname", "kernel", "machine", "recorder", "backend"]
META_NUMBERS = {9: "tgid", 10: "stack_limit", 11: "whole_life", 12: "sample_every", 13: "sample_bytes",
                14: "min_size", 15: "max_size", 16: "trigger_bytes", 17: "ring_size", 18: "guarded",
                19: "of_kernel", 20: "dropped", 21: "trigger_process", 22: "trigger_site"}
LOSS_NAMES = ["allocs", "frees", "releases", "restores", "returns", "states", "pointers", "execs",
              "maps", "modules", "unmaps", "overruns", "notices", "looks", "users", "sums",
              "frames", "callers", "functions"]
SKIP_NAMES = ["size", "sample", "trigger", "delay", "free", "unkept", "child",
              "short", "own", "slab", "pages"]


# Each function takes a Bytes and gives lines, and raises Damaged

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
    return lines + ["  %s %d" % (name, numbers.get(tag, 0)) for tag, name in META_NUMBERS.items()
                    if tag < 20 or numbers.get(tag)]


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


def dump_origins(data):
    count = data.uvar()
    if count > THREADS_MAX:
        raise Damaged("%d origins" % count)
    for _ in range(count):
        yield "  ORIGIN %d, tgid %d, process %s" % (data.uvar32(), data.uvar32(),
                                                    escape(data.str()))
        for name in ("cgroup", "cache", "flags"):
            yield "    %s %s" % (name, escape(data.str()))
        order = data.uvar()
        if order > 63:
            raise Damaged("an order of %d" % order)
        yield "    order %d" % order
    data.end()


def dump_memory(data, time):
    """The samples of a chunk whose header's first time is @time."""
    count = data.uvar()
    if count > THREADS_MAX:
        raise Damaged("%d samples" % count)
    before = {}
    for _ in range(count):
        line = "  MEMORY tgid %d" % data.uvar32()
        time = time + data.svar() & MASK64
        line += ", time %d" % time
        mask = data.uvar()
        if not mask:
            line += ", error %d" % data.uvar32()
        elif not mask & (1 << MEMORY_VALUES) - 1:
            line += ", error 0"
        for value in range(64):
            if mask >> value & 1:
                before[value] = before.get(value, 0) + data.svar() & MASK64
                if value < MEMORY_VALUES:
                    line += ", %d: %d" % (value, before[value])
        yield line
    data.end()


def dump_marks(data, time):
    """The marks of a chunk whose header's first time is @time."""
    count = data.uvar()
    if count > THREADS_MAX:
        raise Damaged("%d marks" % count)
    for _ in range(count):
        time = time + data.svar() & MASK64
        kind = data.uvar32()
        yield "  MARK time %d, kind %d, text %s" % (time, kind, escape(data.str()))
    data.end()


def dump_accounts(data):
    count = data.uvar()
    if count > THREADS_MAX:
        raise Damaged("%d accounts" % count)
    for _ in range(count):
        tgid, tid, flags = data.uvar32(), data.uvar32(), data.uvar32()
        allocated, freed, others = [(data.uvar(), data.uvar()) for _ in range(3)]
        yield "  ACCOUNT tgid %d, tid %d, flags 0x%x, allocated %d %d, freed %d %d, by others %d %d" % (
            tgid, tid, flags, *allocated, *freed, *others)
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
    lines = ["  LOSSES " + counts(data, LOSS_NAMES), "  SKIPPED " + counts(data, SKIP_NAMES),
             "  SKIPPED BYTES " + counts(data, SKIP_NAMES)]
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
