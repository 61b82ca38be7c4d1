"""Pointers in memory and mappings, for trace_reader.py: written from doc/trace-format.md alone."""

from trace_bytes import MASK64, Bytes, Damaged, escape, note

WORDS_MAX = 131072
LIST_MAX = 1048576
REGISTERS = 17
PASS_FLAGS = 7
REGIONS_MAX = 262144


def limited(data, least, most, what):
    """A number of things that follow, of which each has @least bytes."""
    count = data.uvar()
    if count > most or count > data.left() // least:
        raise Damaged("%d %s" % (count, what))
    return count


def dump_pointers(data):
    tgid, number = data.uvar32(), data.uvar32()
    count = limited(data, 2, WORDS_MAX, "words")
    lengths = [data.uvar() for _ in range(data.u8())]
    if len(lengths) < 2:
        raise Damaged("%d columns" % len(lengths))
    columns = [Bytes(data.take(length)) for length in lengths]
    lines = ["  POINTERS tgid %d, pass %d, words %d" % (tgid, number, count)]
    address = value = 0
    for i in range(count):
        step = columns[0].uvar()
        address += step * 8
        value = value + columns[1].svar() & MASK64
        if address > MASK64 or i and not step:
            raise Damaged("words that do not ascend")
        lines.append("    %x: %x" % (address, value))
    for column in columns[:2]:
        column.end()
    yield from lines
    data.end()


def dump_pass(data):
    tgid, number, snapshot, flags = data.uvar32(), data.uvar32(), data.uvar32(), data.uvar32()
    if flags & ~PASS_FLAGS:
        note("flags 0x%x of a pass" % flags)
    begin = data.u64()
    until = begin + data.uvar()
    if until > MASK64:
        raise Damaged("a pass that ends too late")
    words = data.uvar()
    lines = ["  PASS tgid %d, pass %d, snapshot %d, flags 0x%x, time %d to %d, words %d" % (
        tgid, number, snapshot, flags, begin, until, words)]
    end = 0
    for _ in range(limited(data, 7, LIST_MAX, "ranges")):
        start = end + data.uvar()
        end = start + data.uvar()
        if end > MASK64:
            raise Damaged("a range beyond the address space")
        perms, offset, path = data.u8(), data.uvar(), data.str()
        absent, unread = data.uvar(), data.uvar()
        if absent + unread > end - start:
            raise Damaged("more bytes than the range has")
        lines.append("    range %x-%x perms %d %x absent %d unread %d path %s" % (
            start, end, perms, offset, absent, unread, escape(path)))
    for _ in range(limited(data, 3, LIST_MAX, "threads")):
        tid, how, known = data.uvar32(), data.u8(), data.uvar()
        if known >> REGISTERS:
            raise Damaged("a register that there is not")
        registers = ["r%d %x" % (reg, data.uvar()) for reg in range(REGISTERS) if known >> reg & 1]
        lines.append(" ".join(["    thread %d how %d" % (tid, how)] + registers))
    for _ in range(limited(data, 3, LIST_MAX, "roots")):
        lines.append("    root %d of %d: %x" % (data.u8(), data.uvar32(), data.uvar()))
    yield from lines
    data.end()


SMAPS_VALUES = ["rss", "pss", "anon", "swap", "lazy", "dirty"]


def dump_smaps(data):
    count = data.uvar()
    if count > LIST_MAX:
        raise Damaged("%d mappings" % count)
    for _ in range(count):
        yield from dump_mapping(data)
    data.end()


def dump_mapping(data):
    tgid, snapshot, start = data.uvar32(), data.uvar32(), data.uvar()
    end = start + data.uvar()
    if end > MASK64:
        raise Damaged("a mapping beyond the address space")
    perms, offset, path = data.u8(), data.uvar(), data.str()
    known = data.uvar()
    values = [(bit, data.uvar()) for bit in range(64) if known >> bit & 1]
    line = "  SMAPS tgid %d, snapshot %d, %x-%x perms %d %x" % (tgid, snapshot, start, end, perms, offset)
    line += "".join(" %s %d" % (SMAPS_VALUES[bit], value) for bit, value in values if bit < len(SMAPS_VALUES))
    lines = [line + " path " + escape(path)]
    for _ in range(limited(data, 2, MASK64, "runs of pages")):
        first = start + data.uvar() * 4096
        start = first + data.uvar() * 4096
        if start > end or start == first:
            raise Damaged("pages that are not of the mapping")
        lines.append("    pages %x-%x" % (first, start))
    yield from lines
def dump_regions(data):
    tgid, time, left_out = data.uvar32(), data.u64(), data.uvar()
    count = limited(data, 8, REGIONS_MAX, "mappings")
    lines = ["  REGIONS tgid %d, time %d, left out %d, mappings %d" % (tgid, time, left_out, count)]
    paths, end = [], 0
    for i in range(count):
        start = end + data.uvar()
        end = start + data.uvar()
        if end > MASK64:
            raise Damaged("a mapping beyond the address space")
        perms, offset = data.u8(), data.uvar()
        major, minor, inode, back = data.uvar32(), data.uvar32(), data.uvar(), data.uvar()
        if back > i:
            raise Damaged("the path of an entry before the first")
        paths.append(paths[i - back] if back else data.str())
        lines.append("    %x-%x perms %d %x %x:%x %d path %s" % (
            start, end, perms, offset, major, minor, inode, escape(paths[i])))
    yield from lines
    data.end()


HEAP_BLOCKS_MAX = 65536
HEAP_ARENAS_MAX = 65536
HEAP_STATES = 7


def dump_heap(data):
    tgid, snapshot, flags = data.uvar32(), data.uvar32(), data.uvar32()
    if flags & ~1:
        note("flags 0x%x of a walk" % flags)
    allocator = data.str()
    begin = data.u64()
    until = begin + data.uvar()
    if until > MASK64:
        raise Damaged("a walk that ends too late")
    unwalked = data.uvar()
    arenas = []
    for _ in range(limited(data, 2, HEAP_ARENAS_MAX, "arenas")):
        address, length = data.uvar(), data.uvar()
        if address + length > MASK64:
            raise Damaged("an arena beyond the address space")
        arenas.append("    arena %x %d" % (address, length))
    count = limited(data, 4, HEAP_BLOCKS_MAX, "blocks")
    lengths = [data.uvar() for _ in range(data.u8())]
    if len(lengths) < 4:
        raise Damaged("%d columns" % len(lengths))
    columns = [Bytes(data.take(length)) for length in lengths]
    lines = ["  HEAP tgid %d, snapshot %d, flags 0x%x, allocator %s, time %d to %d, unwalked %d, "
             "blocks %d" % (tgid, snapshot, flags, escape(allocator), begin, until, unwalked, count)]
    lines += arenas
    end = first = 0
    for _ in range(count):
        address = end + columns[0].uvar()
        end = address + columns[1].uvar()
        state = columns[2].u8()
        first = first + columns[3].svar() & MASK64
        if end > MASK64 or address % 8:
            raise Damaged("a block that cannot be")
        if state >= HEAP_STATES:
            note("state %d of a block" % state)
        lines.append("    block %x %d state %d first %x" % (address, end - address, state, first))
    for column in columns[:4]:
        column.end()
    yield from lines
    data.end()


CODE_NAMES_MAX = 65536


def dump_code_names(data):
    tgid, time, source, flags = data.uvar32(), data.u64(), data.uvar32(), data.uvar32()
    left_out, problem = data.uvar(), data.str()
    count = limited(data, 4, CODE_NAMES_MAX, "names")
    lines = ["  CODENAMES tgid %d, time %d, source %d, flags 0x%x, left out %d, names %d, problem %s" % (
        tgid, time, source, flags, left_out, count, escape(problem))]
    start = 0
    for _ in range(count):
        start = start + data.svar() & MASK64
        length = data.uvar()
        if start + length > MASK64:
            raise Damaged("a function beyond the address space")
        frame = data.uvar32()
        lines.append("    code %x %d frame %d name %s" % (start, length, frame, escape(data.str())))
    yield from lines
    data.end()
