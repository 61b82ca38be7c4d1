"""UNWOUND chunks, for trace_reader.py: written from doc/trace-format.md alone."""

from trace_bytes import MASK32, MASK64, Bytes, Damaged, escape, note
from trace_events import ALLOC, KINDS, NO_ADDRESS, Events

COLUMNS = 6
FRAMES_MAX = 16384
NESTED = 0x100


class Heads(Events):
    """The events of a payload without registers and stacks."""

    def allocation(self, thread, size):
        func = self.function.u8()
        self.previous_id = (self.previous_id + 1 + self.id.svar()) & MASK64
        return func, self.previous_id

    def record(self):
        kind = self.next_kind()
        thread, address, size, parent, flags = self.next_head(kind)
        func = number = 0
        nested, kind = kind & 0x20, kind & 0x1f
        if kind == ALLOC:
            func, number = self.allocation(thread, size)
        name = KINDS[kind]
        return ["    head %s flags 0x%x, tgid %d, tid %d, time %d, addr 0x%x, size %d, func %d, "
                "id %d" % (name, NESTED if nested else flags, thread.tgid, thread.tid,
                           self.previous_time, parent if kind in NO_ADDRESS else address,
                           size, func, number)]


class StackTables:
    """The modules and stacks of one chunk, from the five columns that tell what they are."""

    def __init__(self, columns, nr_modules, nr_stacks):
        self.modules, self.callers, self.code, self.pcs, self.flags = columns
        self.nr_modules, self.nr_stacks = nr_modules, nr_stacks

    def dump(self):
        for _ in range(self.nr_modules):
            ident, path = self.modules.id(), self.modules.str()
            yield "    module %s bias 0x%x path %s" % (
                ident.hex() or "-", self.modules.u64(), escape(path))
        last, depths = {}, [0]
        for number in range(1, self.nr_stacks + 1):
            yield self.stack(number, last, depths)

    def stack(self, number, last, depths):
        back, flags = self.callers.uvar(), self.flags.uvar32()
        if back >= number:
            raise Damaged("stack %d is called by one %d before" % (number, back))
        if not back:
            depths.append(0)
            return "    stack %d status %d" % (number, flags)
        module = self.code.uvar()
        if module > self.nr_modules:
            raise Damaged("no module %d" % module)
        last[module] = (last.get(module, 0) + self.pcs.svar()) & MASK64
        depths.append(depths[number - back] + 1)
        if depths[number] > FRAMES_MAX:
            raise Damaged("a stack of %d frames" % depths[number])
        return "    stack %d caller %d module %d pc 0x%x flags 0x%x" % (
            number, number - back, module, last[module], flags)


class Unwound:
    """One UNWOUND chunk."""

    def __init__(self, data, full):
        self.crc, self.first = data.u32(), data.u64()
        self.counts = [data.uvar() for _ in range(3)]
        if self.counts[1] >= MASK32:
            raise Damaged("%d stacks" % self.counts[1])
        lengths = [data.uvar() for _ in range(data.u8())]
        if len(lengths) < COLUMNS:
            raise Damaged("only %d columns" % len(lengths))
        self.columns = [Bytes(data.take(length)) for length in lengths[:COLUMNS]]
        for length in lengths[COLUMNS:]:
            note("a column of %d bytes that is not known" % length)
            data.take(length)
        self.stacks = StackTables(self.columns[:5], *self.counts[:2])
        self.allocs = self.columns[5]
        self.heads = Heads(data, self.first, full)

    def dump(self):
        lines = ["  UNWOUND crc %08x, first %d, modules %d, stacks %d, allocs %d" % (
            self.crc, self.first, *self.counts)]
        lines += self.stacks.dump()
        lines.append("    allocs" + "".join(" %d" % n for n in self.numbers()))
        for column in self.columns:
            column.end()
        yield from lines
        yield from self.heads.dump()

    def numbers(self):
        """The number of each ALLOC's stack."""
        before, followed = 0, {}
        for _ in range(self.counts[2]):
            number = self.allocs.uvar() or followed.get(before, 0)
            if not 1 <= number <= self.counts[1]:
                raise Damaged("no stack %d" % number)
            followed[before] = before = number
            yield number
