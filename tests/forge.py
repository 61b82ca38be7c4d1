"""forge - traces taken apart, changed, and put together with right checksums, or made from nothing.

Written from doc/trace-format.md alone.  Needs the command zstd.
"""

import struct
import subprocess
import zlib

FILE_HEADER, CHUNK_HEADER = 64, 96
META, MAPS, MODULE, EVENTS, THREADS, LOSSES, END, INDEX, STACKS, OVERRUNS, UNWOUND, ORIGINS, MEMORY = \
    range(1, 14)
MARKS = 16
HEADER = struct.Struct("<8sIHHQIIQQQQQIIQI")
MAGIC, CHUNK_MAGIC = b"\xf5MLK\r\n\x1a\n", b"\xf5CHK\r\n\x1a\n"
MASK64 = (1 << 64) - 1
SECOND = 10 ** 9


def uvar(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def svar(value):
    """@value is taken modulo 2^64."""
    value &= MASK64
    return uvar(((value << 1) ^ (-1 if value >> 63 else 0)) & MASK64)


def zstd(content, *options):
    return subprocess.run(["zstd", "-cq", *options], input=content, stdout=subprocess.PIPE,
                          check=True).stdout


class Chunk:
    """A chunk, whose content is not compressed as long as it is here."""

    def __init__(self, kind, content, first=0, last=0, records=1, lost=(0, 0, 0)):
        self.kind, self.content, self.first, self.last = kind, content, first, last
        self.records, self.lost = records, lost
        self.compressed = False
        self.seq = None     # None: that of its place
        self.wrong = b""    # stored in place of the content, whose checksum is then wrong

    def bytes(self, salt, seq):
        """As they stand in a file."""
        # with its content size in the frame, which a pipe would not tell
        stored = (zstd(self.content, "--stream-size=%d" % len(self.content)) if self.compressed
                  else self.content)
        head = HEADER.pack(CHUNK_MAGIC, salt, self.kind, int(self.compressed),
                           seq if self.seq is None else self.seq, len(stored), len(self.content),
                           self.first, self.last, *self.lost, self.records, zlib.crc32(stored), 0, 0)
        if self.wrong:
            stored = (self.wrong * len(stored))[:len(stored)]
        return head + struct.pack("<I", zlib.crc32(head)) + stored


def end(reason, time):
    return Chunk(END, struct.pack("<BQQ", reason, time, 0), time, time)


def losses(first, last, lost, skipped=None):
    """@lost: how many of which kind, by its number; @skipped: the same of what was not to be recorded."""
    content = b""
    for some in (lost, skipped or {}):
        counts = [some.get(kind, 0) for kind in range(max(some, default=-1) + 1)]
        content += uvar(len(counts)) + b"".join(map(uvar, counts))
    return Chunk(LOSSES, content + uvar(0), first, last)


def events(calls, first=SECOND, step=1000, tgid=7, tid=7):
    """An EVENTS chunk of coding 0, without stacks: @calls are (address, size) of what malloc gave out,
    (address,) of what is freed; @step nanoseconds lie between two."""
    columns = [bytearray() for _ in range(14)]
    before = allocs = 0
    for i, call in enumerate(calls):
        columns[0] += b"\1" if len(call) > 1 else b"\2"
        columns[1] += b"\1" if i else b"\0" + uvar(tgid) + uvar(tid)
        columns[2] += svar(step if i else 0)
        columns[3] += (b"" if len(call) > 1 else b"\0") + svar(call[0] - before)
        before = call[0]
        if len(call) > 1:
            columns[4] += uvar(call[1])
            columns[5] += b"\1"
            columns[6] += svar(0)
            columns[7] += b"\0"
            columns[8] += b"\x11" + svar(0) + b"\0"
            columns[9] += svar(0)
    content = bytes([0, 14]) + b"".join(uvar(len(c)) for c in columns) + b"".join(columns)
    return Chunk(EVENTS, content, first, first + step * (len(calls) - 1), len(calls))


def blocks(nr, addr, first=SECOND, tgid=7, tid=7):
    """An EVENTS chunk in which malloc gives out @nr blocks of 16 bytes from @addr on; as events(), but
    in no time."""
    def column(of_first, of_others):
        return of_first + of_others * (nr - 1)

    columns = [b"\1" * nr, column(b"\0" + uvar(tgid) + uvar(tid), b"\1"), column(svar(0), svar(1)),
               column(svar(addr), svar(16)), b"\x10" * nr, b"\1" * nr, svar(0) * nr, b"\0" * nr,
               (b"\x11" + svar(0) + b"\0") * nr, svar(0) * nr, b"", b"", b"", b""]
    content = bytes([0, 14]) + b"".join(uvar(len(c)) for c in columns) + b"".join(columns)
    return Chunk(EVENTS, content, first, first + nr - 1, nr)


def frees(nr, addr, first=SECOND, tgid=7, tid=7):
    """An EVENTS chunk that frees what blocks() gave out."""
    def column(of_first, of_others):
        return of_first + of_others * (nr - 1)

    columns = [b"\2" * nr, column(b"\0" + uvar(tgid) + uvar(tid), b"\1"), column(svar(0), svar(1)),
               column(b"\0" + svar(addr), b"\0" + svar(16))] + [b""] * 10
    content = bytes([0, 14]) + b"".join(uvar(len(c)) for c in columns) + b"".join(columns)
    return Chunk(EVENTS, content, first, first + nr - 1, nr)


def memory(samples):
    """A MEMORY chunk: @samples are (tgid, time, {number: value}), the number that of doc/trace-format.md."""
    content, time, last = uvar(len(samples)), samples[0][1], {}
    for tgid, now, values in samples:
        content += uvar(tgid) + svar(now - time) + uvar(sum(1 << number for number in values))
        for number in sorted(values):
            content += svar(values[number] - last.get(number, 0))
        last.update(values)
        time = now
    return Chunk(MEMORY, content, samples[0][1], samples[-1][1], len(samples))


def marks(all_of_them):
    """A MARKS chunk of (time, kind, text)."""
    content, before = uvar(len(all_of_them)), all_of_them[0][0]
    for time, kind, text in all_of_them:
        text = text.encode()
        content += svar(time - before) + uvar(kind) + uvar(len(text)) + text
        before = time
    return Chunk(MARKS, content, all_of_them[0][0], all_of_them[-1][0])


def meta(command="forged", tgid=7, whole_life=1, comm=""):
    fields = [(1, command.encode()), (3, comm.encode()), (9, uvar(tgid)), (11, uvar(whole_life))]
    return Chunk(META, b"".join(uvar(tag) + uvar(len(c)) + c for tag, c in fields), SECOND, SECOND)


class Trace:
    """A file header, and chunks.  INDEX chunks are left out, and one is made anew by bytes()."""

    def __init__(self, chunks, salt=0x11223344, start=SECOND, required=1):
        head = MAGIC + struct.pack("<HHIQQIIQQI", 1, 4, FILE_HEADER, required, 0, salt, 0, 0, start, 0)
        self.head = head + struct.pack("<I", zlib.crc32(head))
        self.salt = salt
        self.chunks = chunks
        self.indexed = True
        self.lie = lambda entry: entry  # what the index says of a chunk, a list of its fields

    @classmethod
    def parse(cls, data):
        trace = cls([])
        trace.head = data[:FILE_HEADER]
        trace.salt, = struct.unpack_from("<I", data, 32)
        at = FILE_HEADER
        while at < len(data):
            (magic, _, kind, flags, _, stored, _, first, last, *lost, records, _, _, _) = \
                HEADER.unpack_from(data, at)
            assert magic == CHUNK_MAGIC
            at += CHUNK_HEADER
            content = data[at:at + stored]
            if flags & 1:
                content = subprocess.run(["zstd", "-dcq"], input=content, stdout=subprocess.PIPE,
                                         check=True).stdout
            if kind != INDEX:
                trace.chunks.append(Chunk(kind, content, first, last, records, tuple(lost)))
            at += stored
        return trace

    @classmethod
    def read(cls, path):
        with open(path, "rb") as file:
            return cls.parse(file.read())

    def of(self, kind):
        return [chunk for chunk in self.chunks if chunk.kind == kind]

    def index(self, entries):
        content, before = uvar(0) + uvar(len(entries)), [0, 0, 0, 0]
        for entry in entries:
            kind, at, seq, first, last, records = self.lie(list(entry))
            content += (uvar(kind) + uvar(at - before[1] & MASK64) + uvar(seq - before[2] & MASK64) +
                        svar(first - before[3]) + svar(last - first) + uvar(records))
            before = [0, at, seq, first]
        return Chunk(INDEX, content)

    def bytes(self):
        out, entries, seq = bytearray(self.head), [], 0
        for chunk in self.chunks:
            if chunk.kind == END and self.indexed:
                at = len(out)
                out += self.index(entries).bytes(self.salt, seq)
                seq += 1
                chunk.content = chunk.content[:9] + struct.pack("<Q", at)
            entries.append((chunk.kind, len(out), seq, chunk.first, chunk.last, chunk.records))
            out += chunk.bytes(self.salt, seq)
            seq += 1
        return bytes(out)


def small(calls, more=(), reason=1, whole_life=1, **how):
    """A whole trace of one chunk of events, with the chunks @more behind it."""
    chunk = events(calls, **how)
    return Trace([meta(whole_life=whole_life), chunk, *more, end(reason, chunk.last + SECOND)])
