"""CODE and INTERPRETERS chunks, and frames, for trace_reader.py: from doc/trace-format.md alone."""

import zlib

from trace_bytes import MASK64, Damaged, escape

FUNCTIONS_MAX = 1048576
LINES_MAX = 1048576
FRAMES_MAX = 1024


def dump_codes(data):
    count = data.uvar()
    if count > FUNCTIONS_MAX:
        raise Damaged("%d functions" % count)
    for _ in range(count):
        number, tgid, language = data.uvar32(), data.uvar32(), data.u8()
        name, file = data.str(), data.str()
        first, kind, length = data.uvar32(), data.u8(), data.uvar()
        if not number or length > LINES_MAX:
            raise Damaged("a function %d with %d bytes of lines" % (number, length))
        yield "  CODE %d, tgid %d, language %d, first line %d, lines %d, length %d, crc %08x" % (
            number, tgid, language, first, kind, length, zlib.crc32(data.take(length)))
        yield "    name " + escape(name)
        yield "    file " + escape(file)
    data.end()


def dump_interpreter(data):
    tgid, time, language, known = data.uvar32(), data.u64(), data.u8(), data.u8() & 1
    yield "  INTERPRETER tgid %d, time %d, language %d, known %d" % (tgid, time, language, known)
    yield "    version " + escape(data.str())
    yield "    why " + escape(data.str())
    ranges = data.uvar()
    if ranges > 4:
        raise Damaged("%d ranges" % ranges)
    end = 0
    for _ in range(ranges):
        start = end + data.uvar()
        end = start + data.uvar()
        if end > MASK64:
            raise Damaged("a range behind the last address")
        yield "    range 0x%x-0x%x" % (start, end)
    counts = [data.uvar() for _ in range(data.uvar())]
    yield "    counts " + " ".join("%d" % count for count in (counts + [0] * 5)[:5])
    data.end()


class Frames:
    """4.4.6: the interpreted stacks of a chunk."""

    def __init__(self, numbers, stacks):
        self.numbers, self.column = numbers, stacks
        self.frames, self.stacks = [], []

    def frame(self):
        number = self.column.uvar()
        if number > len(self.frames):
            raise Damaged("no frame %d yet" % number)
        if number:
            return self.frames[number - 1]
        self.frames.append((self.column.uvar32(), self.column.uvar32()))
        return self.frames[-1]

    def next(self):
        """The frames of the next ALLOC, innermost first."""
        number = self.numbers.uvar()
        while len(self.stacks) < number:
            back = self.column.uvar()
            if back > len(self.stacks):
                raise Damaged("callers before the first")
            callers = self.stacks[-back] if back else []
            self.stacks.append([self.frame()] + callers)
            if len(self.stacks[-1]) > FRAMES_MAX:
                raise Damaged("too many frames")
        return self.stacks[number - 1] if number else []

    def text(self):
        frames = self.next()
        return ", frames " + " ".join("%d:%d" % frame for frame in frames) if frames else ""
