"""Pointers in memory, for trace_reader.py: written from doc/trace-format.md alone."""

from trace_bytes import MASK64, Bytes, Damaged, escape, note

WORDS_MAX = 131072
LIST_MAX = 1048576
REGISTERS = 17
PASS_FLAGS = 7


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
