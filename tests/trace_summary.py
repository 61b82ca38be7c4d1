"""EVENTS chunks in coding 2, for trace_reader.py: written from doc/trace-format.md 4.4.4 alone."""

from trace_bytes import MASK32, MASK64, Bytes, Damaged, note
from trace_events import ALLOC, FORK, FREE, KINDS, NO_ADDRESS, PAGES, RANGES, RELEASE
from trace_unwound import NESTED, StackTables

CODING = 2
COLUMNS = 17
PLACE_BITS = 24
OPERATIONS = ((ALLOC, 0), (FREE, 0), (RELEASE, 0), (FREE, NESTED))


class Group:
    def __init__(self, base, facts):
        self.base, self.facts, self.next = base, facts, 0


class Summary:
    """One such chunk; @crc is that of its stored payload."""

    def __init__(self, data, first_time, crc):
        mode = data.u8()
        if mode >> 4 != CODING or mode & 15 > 2:
            raise Damaged("stacks of an unknown mode or coding")
        modules, stacks, self.nr_allocs, self.unit = (data.uvar() for _ in range(4))
        if stacks >= MASK32:
            raise Damaged("%d stacks" % stacks)
        lengths = [data.uvar() for _ in range(data.u8())]
        if len(lengths) < COLUMNS:
            raise Damaged("only %d columns" % len(lengths))
        if len(lengths) > COLUMNS:
            note("%d columns" % len(lengths))
        self.columns = [Bytes(data.take(length)) for length in lengths[:COLUMNS]]
        self.stacks = StackTables(self.columns[:5], modules, stacks)
        (self.codes, self.places, self.bases, self.sizes, self.functions, self.flags, self.numbers,
         self.times, self.thread_numbers, self.ids, self.kinds, self.addresses) = self.columns[5:]
        self.first, self.crc = first_time, crc
        self.time, self.address, self.id = first_time, 0, 0
        self.groups, self.threads, self.allocs = [], [], []

    def dump(self):
        lines, heads = list(self.stacks.dump()), []
        while self.codes.left():
            heads.append(self.record())
        for column in self.columns:
            column.end()
        if len(self.allocs) != self.nr_allocs:
            raise Damaged("%d ALLOCs, not %d" % (len(self.allocs), self.nr_allocs))
        yield "  UNWOUND crc %08x, first %d, modules %d, stacks %d, allocs %d" % (
            self.crc, self.first, self.stacks.nr_modules, self.stacks.nr_stacks, self.nr_allocs)
        yield from lines
        yield "    allocs" + "".join(" %d" % n for n in self.allocs)
        yield from heads

    def record(self):
        code = self.codes.uvar()
        tgid, tid = self.thread()
        self.time = (self.time + self.times.svar() * self.unit) & MASK64
        kind, flags, address, facts = self.grouped(code) if code else self.plain()
        size = func = number = 0
        if kind == ALLOC:
            size, func, flags, stack = facts
            self.allocs.append(stack)
            number = self.id = (self.id + 1 + self.ids.svar()) & MASK64
        elif facts:
            size, func = facts
        return ("    head %s flags 0x%x, tgid %d, tid %d, time %d, addr 0x%x, size %d, func %d, "
                "id %d" % (KINDS[kind], flags, tgid, tid, self.time, address, size, func, number))

    def thread(self):
        number = self.thread_numbers.uvar()
        if number > len(self.threads):
            raise Damaged("no thread %d yet" % number)
        if number:
            return self.threads[number - 1]
        self.threads.append((self.thread_numbers.uvar32(), self.thread_numbers.uvar32()))
        return self.threads[-1]

    def facts(self):
        facts = self.sizes.uvar(), self.functions.u8(), self.flags.uvar32(), self.numbers.uvar()
        if not 1 <= facts[3] <= self.stacks.nr_stacks:
            raise Damaged("no stack %d" % facts[3])
        return facts

    def grouped(self, code):
        number, (kind, flags) = code // len(OPERATIONS), OPERATIONS[code % len(OPERATIONS)]
        if not 1 <= number <= len(self.groups) + 1:
            raise Damaged("no group %d" % number)
        if number > len(self.groups):
            before = self.groups[-1].base if self.groups else 0
            base = (before + self.bases.svar()) & MASK64
            self.groups.append(Group(base, self.facts() if kind == ALLOC else None))
        group = self.groups[number - 1]
        if kind == ALLOC and not group.facts:
            raise Damaged("an ALLOC of a group that is not known")
        place = ((group.next if kind == ALLOC else group.next - 1) + self.places.svar()) & MASK64
        if place >> PLACE_BITS:
            raise Damaged("place %d" % place)
        group.next = place + 1 if kind == ALLOC else place
        address = (group.base << PLACE_BITS | place) & MASK64
        return kind, flags, address, group.facts if kind == ALLOC else None

    def plain(self):
        kind = self.kinds.u8()
        nested, kind = kind & 0x20, kind & ~0x20
        if not ALLOC <= kind <= PAGES or (nested and kind != FREE):
            raise Damaged("no such kind of record")
        address, facts = 0, None
        if kind not in NO_ADDRESS:
            address = self.address = (self.address + self.addresses.svar()) & MASK64
        if kind == ALLOC:
            facts = self.facts()
        elif kind in RANGES:
            facts = self.sizes.uvar(), self.functions.u8() if kind == PAGES else 0
        elif kind == FORK:
            address = self.sizes.uvar32()
        return kind, NESTED if nested else 0, address, facts
