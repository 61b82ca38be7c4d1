"""forge_kernel - traces of the kernel's memory, made from nothing.

Written from doc/trace-format.md alone: the events as in its section 4.4, the rest as in 4.12.
"""

import struct

from forge import EVENTS, MAPS, MODULE, META, SECOND, THREADS, Chunk, Trace, end, svar, uvar

KERNEL = 0xffffffff81000000     # where a trace has _text
STACK = 0xffffc90000000000
RIP = 16
KMALLOC = 14
BUILD_ID = 1                    # kinds of an id
OTHER_ID = 2


def text(value):
    return uvar(len(value)) + value.encode()


def identity(kind, value):
    return bytes([1 + len(value), kind]) + value


class Image:
    """The kernel, or a module of it, as a recorder puts it into a trace: an ELF file with the
    @functions, a list of (name, address, size); and how the trace has it mapped."""

    def __init__(self, functions, build_id=b"", path="[kernel]", start=KERNEL, size=1 << 24, at=None):
        self.functions, self.build_id, self.path = functions, build_id, path
        self.start, self.size, self.at = start, size, start if at is None else at
        self.id = identity(*((BUILD_ID, build_id) if build_id else (OTHER_ID, path.encode()[:8])))

    def sections(self):
        """(name, type, flags, address, link, entry size, contents) of each."""
        note = struct.pack("<III4s", 4, len(self.build_id), 3, b"GNU") + self.build_id
        # A frame is one word, the return address: DW_CFA_def_cfa r7, 8; DW_CFA_offset r16 at cfa - 8.
        rule = struct.pack("<IIBBBBB3s2s2xIIQQ4xI", 16, 0, 1, 0, 1, 0x78, 16, b"\x0c\7\x08", b"\x90\1",
                           24, 24, self.start, self.size, 0)
        names, symbols = b"\0", bytes(24)
        for name, address, size in self.functions:
            # global, a function, of no section
            symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 0xfff1, address, size)
            names += name.encode() + b"\0"
        return [(".note.gnu.build-id", 7, 0, 0, 0, 0, note if self.build_id else b""),
                (".eh_frame", 1, 2, self.start + self.size, 0, 0, rule),
                (".symtab", 2, 0, 0, 4, 24, symbols),
                (".strtab", 3, 0, 0, 0, 0, names)]

    def elf(self):
        sections = self.sections()
        strings = b"\0" + b"".join(s[0].encode() + b"\0" for s in sections) + b".shstrtab\0"
        sections.append((".shstrtab", 3, 0, 0, 0, 0, strings))
        body, heads = bytearray(64 + 56), bytearray(64)
        for name, kind, flags, address, link, entry, contents in sections:
            body += bytes(-len(body) % 16)
            heads += struct.pack("<IIQQQQIIQQ", strings.index(name.encode() + b"\0"), kind, flags, address,
                                 len(body), len(contents), link, 1 if kind == 2 else 0, 4 if kind == 7 else 8, entry)
            body += contents
        body[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0, 64, len(body), 0, 64,
                                56, 1, 64, len(sections) + 1, len(sections))
        body[64:120] = struct.pack("<IIQQQQQQ", 1, 5, 0, self.start, self.start, self.size, self.size, 4096)
        return bytes(body + heads)

    def module(self):
        image = self.elf()
        return Chunk(MODULE, self.id + text(self.path) + uvar(len(image)) + uvar(0) + uvar(len(image)) + image)


def maps(images, time=SECOND):
    """All @images as they are mapped, and where they are executed."""
    content, before = uvar(0) + struct.pack("<Q", time) + uvar(len(images)), 0
    for image in sorted(images, key=lambda image: image.at):
        content += uvar(image.at - before) + uvar(image.size) + uvar(0) + b"\5" + bytes(3)
        content += image.id + text(image.path)
        before = image.at + image.size
    return Chunk(MAPS, content, time, time)


def allocations(stacks, first=SECOND, size=64, at=0xffff888000000000):
    """An EVENTS chunk in which kmalloc gives out a block of @size bytes, 4096 behind the one before, for each of
    @stacks, lists of at most 15 return addresses, innermost first."""
    columns = [bytearray() for _ in range(17)]
    last_word = 0
    for i, stack in enumerate(stacks):
        words = list(stack) + [0]
        columns[0] += b"\1"
        columns[1] += b"\1" if i else b"\0" + uvar(0) + uvar(1)
        columns[2] += b"\1" if i else b"\0"
        columns[14] += svar(0)
        columns[3] += svar(4096 if i else at)
        columns[4] += uvar(size)
        columns[5] += bytes([KMALLOC])
        columns[6] += svar(0)
        columns[7] += uvar(1)
        columns[8] += bytes([RIP + 1]) + svar(0 if i else STACK) + uvar(1 << RIP)
        columns[15] += uvar(0)
        ends = STACK + 8 * (len(words) - 1)
        columns[9] += svar(ends - (STACK + 8 * len(stacks[i - 1]) if i else 0)) + uvar(1) + uvar(0)
        columns[10] += struct.pack("<H", (1 << len(words) - 1) - 1)
        columns[11] += uvar(0) * (len(words) - 1)
        for word in words:
            columns[12] += svar(word - last_word)
            last_word = word
    content = bytes([1 << 4, 17]) + b"".join(uvar(len(c)) for c in columns) + b"".join(columns)
    return Chunk(EVENTS, content, first, first + len(stacks) - 1, len(stacks))


def trace(images, stacks, release="6.0.0-forged", more=()):
    """The bytes of a whole trace, with @more chunks behind those of the stacks."""
    fields = [(1, b"the kernel"), (3, b"kernel"), (5, release.encode()), (6, b"x86_64"), (9, uvar(0)),
              (19, uvar(1))]
    meta = Chunk(META, b"".join(uvar(tag) + uvar(len(c)) + c for tag, c in fields), SECOND, SECOND)
    threads = Chunk(THREADS, uvar(1) + uvar(0) + uvar(1) + text("forged"))
    events = allocations(stacks)
    chunks = [meta, threads, *(image.module() for image in images), maps(images), events]
    last = max(chunk.last for chunk in [events, *more])
    return Trace(chunks + [*more, end(1, last + SECOND)]).bytes()
