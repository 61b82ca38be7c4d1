"""Primitives and text, for trace_reader.py: written from doc/trace-format.md alone."""

import struct
import sys

STRING_MAX = 4096
ID_MAX = 32
MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1


class Refused(Exception):
    """The file as a whole cannot be read."""


class Damaged(Exception):
    """The payload of a chunk is not what the specification says."""


def note(text):
    """Tell of what no writer does, though a reader may read on."""
    print("trace_reader: note: " + text, file=sys.stderr)


class Bytes:
    """Bytes read from the beginning to the end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        if length > self.left():
            raise Damaged("%d bytes wanted, %d left" % (length, self.left()))
        self.at += length
        return self.data[self.at - length:self.at]

    def peek(self):
        """The next byte, which stays; 0 at the end."""
        return self.data[self.at] if self.left() else 0

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def uvar(self):
        value = 0
        for i in range(10):
            byte = self.u8()
            value |= (byte & 0x7f) << (7 * i)
            if not byte & 0x80:
                if value > MASK64:
                    raise Damaged("a uvar of more than 64 bits")
                return value
        raise Damaged("a uvar of more than 10 bytes")

    def uvar32(self):
        value = self.uvar()
        if value > MASK32:
            raise Damaged("a number of more than 32 bits")
        return value

    def svar(self):
        """As a number modulo 2^64: it is always added to something."""
        value = self.uvar()
        return (value >> 1) ^ (MASK64 if value & 1 else 0)

    def str(self):
        length = self.uvar()
        if length > STRING_MAX:
            raise Damaged("a str of %d bytes" % length)
        text = self.take(length)
        if b"\0" in text:
            raise Damaged("a str with a NUL")
        return text

    def id(self):
        length = self.u8()
        if length > ID_MAX:
            raise Damaged("an id of %d bytes" % length)
        return self.take(length)

    def end(self):
        if self.left():
            note("%d bytes too many" % self.left())


UNSAFE = [(0x80, 0x9f), (0xad, 0xad), (0x61c, 0x61c), (0x180e, 0x180e), (0x200b, 0x200f),
          (0x2028, 0x202e), (0x2060, 0x206f), (0xfeff, 0xfeff), (0xfff9, 0xfffb),
          (0xfffe, 0xffff), (0xe0000, 0xe007f)]


def escape(text):
    """The bytes @text as report/base/text.h says that names are printed."""
    out = []
    for c in map(ord, text.decode(errors="surrogateescape")):
        if 0xdc80 <= c <= 0xdcff:
            out.append("\\x%02X" % (c - 0xdc00))
        elif c < 0x20 or c == 0x7f:
            out.append("\\x%02X" % c)
        elif any(first <= c <= last for first, last in UNSAFE):
            out.append("\\u{%X}" % c)
        else:
            out.append(chr(c))
    return "".join(out)
