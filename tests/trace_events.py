"""EVENTS chunks, for trace_reader.py: written from doc/trace-format.md alone."""

import re
import zlib

from trace_bytes import MASK64, Bytes, Damaged, note
from trace_code import Frames

STACK_MAX = 65536
OVERRUN_MAX = 256
IMAGE_MAX = 131072  # of a thread's stack
ALL_IMAGES_MAX = 134217728
CHUNK_THREADS_MAX = {0: 65536, 1: 4096, 3: 4096, 4: 4096}  # by coding
RECENT = 120  # words that have numbers by when they came, from coding 3 on
CLASSES = 1024  # of sizes
BLOCK = 128  # what a slice is cut out of
TOP_WORDS = 16
MARK = 0xc00000000000  # where distances of words near the stack are
MIB = 1 << 20
SP = 7  # DWARF number of the stack pointer
RAW, FILTERED, REDACTED = range(3)
ALLOC, FREE, RELEASE, RESTORE, EXEC, UNMAP, FORK, EXIT, PAGES = range(1, 10)
KINDS = ["", "ALLOC", "FREE", "RELEASE", "RESTORE", "EXEC", "UNMAP", "FORK", "EXIT", "PAGES"]
PAGES_NAMES = ["", "accessible", "given-back", "lazily-freed", "resident"]
FUNCS = ["", "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc",
         "pvalloc", "reallocarray", "mmap", "mremap", "new", "new[]",
         "kmalloc", "kmem_cache_alloc", "alloc_pages", "alloc_percpu"]
NO_ADDRESS = (EXEC, FORK, EXIT)
RANGES = (UNMAP, PAGES)


def pages_name(number):
    return PAGES_NAMES[number] if 1 <= number < len(PAGES_NAMES) else "unknown-%d" % number


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


class Blocks:
    """The ALLOCs of a chunk, and where the next one is expected: 4.4.1."""

    def __init__(self):
        self.addresses, self.classes, self.below = [], [], []
        self.freed = {}  # by class: the block freed last
        self.behind = 0

    @staticmethod
    def taken(size):
        return (max(size, 24) + 23 & MASK64) & ~15

    def expect(self, size):
        last = self.freed.get(self.taken(size) // 16 % CLASSES)
        if last is None:
            return self.behind, self.behind
        self.freed[self.classes[last]] = self.below[last]
        return self.addresses[last], self.behind

    def add(self, address, size):
        self.addresses.append(address)
        self.classes.append(self.taken(size) // 16 % CLASSES)
        self.below.append(None)
        self.behind = (address + self.taken(size)) & MASK64

    def free(self, block):
        before = self.freed.get(self.classes[block])
        if before != block:
            self.below[block] = before
            self.freed[self.classes[block]] = block


class Events:
    """The decoder of one EVENTS chunk."""

    COLUMNS = {0: 14, 1: 17, 3: 17, 4: 17}  # by coding
    WITH_FRAMES = 19

    def __init__(self, data, first_time, full):
        mode = data.u8()
        self.mode, self.coding = mode & 15, mode >> 4
        if self.mode > REDACTED or self.coding not in self.COLUMNS:
            raise Damaged("stacks of an unknown mode or coding")
        known = self.COLUMNS[self.coding]
        lengths = [data.uvar() for _ in range(data.u8())]
        if len(lengths) < known:
            raise Damaged("only %d columns" % len(lengths))
        most = self.WITH_FRAMES if self.coding else known
        if len(lengths) > most:
            note("%d columns" % len(lengths))
            del lengths[most:]
        columns = [Bytes(data.take(length)) for length in lengths]
        data.end()
        (self.kind, self.thread, self.time, self.address, self.size, self.function, self.id,
         self.flags, self.registers, self.stack, self.masks, self.words, self.new_words,
         self.top, self.time_high, self.register_words, self.top_words) = (
             columns + [Bytes(b"")] * 3)[:17]
        self.frames = Frames(columns[17], columns[18]) if len(columns) == most > known else None
        self.columns = columns
        self.full = full
        self.threads = []
        self.previous_time = first_time
        self.previous_address = 0
        self.previous_id = 0
        self.blocks = Blocks()
        self.came = []  # words and addresses
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

    def next_kind(self):
        """With the bits of those that are nested, and whose address is as expected."""
        kind = self.kind.u8()
        if kind & 0xc0 and (kind & 0xc0 == 0xc0 or kind & 0x3f != ALLOC or self.coding < 3):
            raise Damaged("no such kind of record")
        if kind & 0xc0:
            return kind
        if not ALLOC <= kind & ~0x20 <= (PAGES if self.coding else EXEC):
            raise Damaged("no such kind of record")
        if kind & 0x20 and kind & ~0x20 != FREE:
            raise Damaged("no such kind of record")
        return kind

    def next_head(self, kind):
        """What records of all kinds have: thread, address, size (of ranges), parent and flags."""
        expected, kind = kind & 0xc0, kind & 0x1f
        thread = self.next_thread()
        delta = self.time.u8() + (self.time_high.svar() << 8) if self.coding else self.time.svar()
        self.previous_time = (self.previous_time + delta) & MASK64
        if kind == ALLOC:
            size = self.size.uvar()
            self.previous_address = self.next_place(expected, size)
            self.blocks.add(self.previous_address, size)
        elif kind not in NO_ADDRESS:
            self.previous_address = self.next_freed(kind in (FREE, RELEASE))
        if kind not in NO_ADDRESS and self.previous_address:
            self.came.append(self.previous_address)
        if kind != ALLOC:
            size = self.size.uvar() if kind in RANGES else 0
        parent = self.size.uvar32() if kind == FORK else 0
        flags = self.flags.uvar32() if kind == ALLOC else 0
        return thread, self.previous_address, size, parent, flags

    def record(self):
        kind = self.next_kind()
        thread, address, size, parent, flags = self.next_head(kind)
        nested, kind = kind & 0x20, kind & 0x1f
        lines = ["  %s flags %s, tgid %d, tid %d, time %d, addr 0x%x" % (
            KINDS[kind], "nested" if nested else "0x%x" % flags, thread.tgid, thread.tid,
            self.previous_time, parent if kind in NO_ADDRESS else address)]
        if kind in RANGES:
            lines[0] += ", size %d" % size
        if kind == PAGES:
            lines[0] += ", pages " + pages_name(self.function.u8())
        if kind == ALLOC:
            text, more = self.allocation(thread, size)
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

    def next_place(self, expected, size):
        if self.coding >= 3:
            first, second = self.blocks.expect(size)
            if expected:
                return first if expected == 0x40 else second
        return (self.previous_address + self.address.svar()) & MASK64

    def next_freed(self, ends):
        back = self.address.uvar()
        if back == 0:
            return (self.previous_address + self.address.svar()) & MASK64
        block = len(self.blocks.addresses) - back
        if block < 0:
            raise Damaged("no %d ALLOCs yet" % back)
        if ends:
            self.blocks.free(block)
        return self.blocks.addresses[block]

    def numbered_word(self, number, first, base=None):
        if number == 0:
            base = self.previous_word if base is None else base
            self.previous_word = (base + self.new_words.svar()) & MASK64
            self.dictionary.append(self.previous_word)
            return self.previous_word
        if not first <= number < first + len(self.dictionary):
            raise Damaged("no word %d yet" % number)
        return self.dictionary[number - first]

    def next_word(self, column, place, gap=None):
        if not self.coding:
            number = self.words.uvar()
            return 0 if number == 1 else self.numbered_word(number, 2)
        beside = hash_of(place if gap is None else gap, self.word_before, 16)
        by_place = hash_of(place, self.pc, 16)
        number = column.uvar()
        if number == 1:
            word = 0
        elif number == 2:
            word = self.beside.get(beside, 0)
        elif number == 3:
            word = self.place.get(by_place, 0)
        elif self.coding == 1:
            word = self.numbered_word(number, 4)
        elif number == 4:
            word = self.numbered_word(0, 5, self.previous_address)
        elif column is self.words:
            word = self.numbered_word(number, 5)
        elif 5 <= number < 5 + RECENT:
            word = self.came[4 - number] if number - 4 <= len(self.came) else 0
        else:
            word = self.numbered_word(number, 5 + RECENT)
        if word and column is not self.words:
            self.came.append(word)
        self.beside[beside] = self.place[by_place] = self.word_before = word
        return word

    def allocation(self, thread, size):
        func = self.function.u8()
        name = FUNCS[func] if 1 <= func < len(FUNCS) else "unknown-%d" % func
        self.previous_id = (self.previous_id + 1 + self.id.svar()) & MASK64
        regs = self.next_registers(thread)
        stack = self.next_stack(thread)
        text = ", size %d, func %s, id %d, regs %s, stack %d, crc %08x" % (
            size, name, self.previous_id, " ".join("%x" % reg for reg in regs), len(stack),
            zlib.crc32(stack))
        if self.frames:
            text += self.frames.text()
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
        self.change_slices(image, sp, end)
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

    def swapped(self, word, addr, sp):
        """A word of a stack for what coding 4 has in its place."""
        start = (sp - sp % MIB - MIB) & MASK64
        if (start - MARK + 32 * MIB) & MASK64 < 64 * MIB:
            return word
        if (word - start) & MASK64 < 16 * MIB:
            return (word - addr + MARK) & MASK64
        pointer = (word - MARK + addr) & MASK64
        return pointer if (pointer - start) & MASK64 < 16 * MIB else word

    def change_slices(self, image, sp, end):
        lo = sp & ~7
        block, before = lo // BLOCK, -1
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
                    index = (addr - lo) // 8
                    if self.coding < 4:
                        image.put(addr, self.next_word(self.words, 64 + index))
                        continue
                    word = self.next_word(self.words, 64 + index, 32768 + index - before)
                    image.put(addr, self.swapped(word, addr, sp))
                    before = index
            block += 1


class Stacks(Events):
    """The decoder of one STACKS chunk."""

    def record(self):
        if self.kind.data[self.kind.at] & 0x1f != ALLOC:
            raise Damaged("a record of STACKS that is no ALLOC")
        first, *more = super().record()
        if self.blocks.addresses[-1]:
            note("a record of STACKS with an address")
        start, _, rest = first.partition(", addr ")
        known = re.search(r", size (\d+),", rest)[1]
        return [start.replace("  ALLOC", "  STACK", 1) + ", known 0x%x" % int(known) +
                rest[rest.index(", regs"):]] + more


class Overruns(Events):
    """The decoder of one OVERRUNS chunk."""

    FOUND = ["", "free", "realloc", "exit", "exec"]

    def __init__(self, data, first_time, full):
        self.heads = Bytes(data.take(data.uvar()))
        super().__init__(data, first_time, full)

    def dump(self):
        yield from super().dump()
        self.heads.end()

    def record(self):
        if self.kind.data[self.kind.at] & 0x1f != ALLOC:
            raise Damaged("a record of OVERRUNS that is no ALLOC")
        first, *more = super().record()
        found, offset = self.heads.u8(), self.heads.svar()
        length, changed = self.heads.uvar(), self.heads.uvar()
        if length > OVERRUN_MAX or changed > length:
            raise Damaged("an overrun of %d bytes, %d of them changed" % (length, changed))
        content = self.heads.take(length) if self.heads.u8() else b""
        name = self.FOUND[found] if 1 <= found < len(self.FOUND) else "unknown-%d" % found
        start, _, rest = re.sub(r", func .*, id \d+(?=, regs)", "", first).partition("ALLOC ")
        return [start + "OVERRUN found %s, offset %d, length %d, changed %d, bytes %s, " % (
            name, offset - (offset >> 63 << 64), length, changed, content.hex() or "-") + rest] + more
