"""What mleak reads in its traces, a reader written from the specification alone reads, too."""

import collections
import re
import struct
import sys

from backends import both_backends, either_backend
from mleaktest import chunk_starts, number, parse_totals
from readertest import ReaderCase

MODES = {"raw": ["--raw-stack"], "filtered": [], "redacted": ["--redact"]}
CHUNK_HEADER = 96
KEPT_WORDS = 16  # of a filtered stack, whatever they are
NEAR_STACK = 16 << 20
SP = 7


def count_kinds(text):
    return collections.Counter(re.findall(r"^  (ALLOC|FREE flags \w+|RELEASE|RESTORE|EXEC|UNMAP|FORK|EXIT)\b",
                                          text, re.M))


def parse_allocs(text):
    """(registers, words of the stack) of each ALLOC in a full dump."""
    found = re.findall(r"^  ALLOC .* regs ([0-9a-f ]+), stack \d+, .*\n((?:    [0-9a-f]{16} .*\n)*)",
                       text, re.M)
    for regs, lines in found:
        stack = bytes.fromhex("".join(line.split()[1] for line in lines.splitlines()))
        yield ([int(reg, 16) for reg in regs.split()],
               struct.unpack("<%dQ" % (len(stack) // 8), stack))


class BothReaders(ReaderCase):
    def check_counts(self, trace, text):
        """Each event is in the dump @text."""
        kinds, report = count_kinds(text), self.report(trace)
        totals = parse_totals(report)
        self.assertEqual(totals.lost, 0)
        self.assertEqual(kinds["ALLOC"], totals.allocations.blocks)
        unknown = re.search(r"^ +unknown frees +([\d,]+)", report, re.M)
        frees = totals.frees.blocks + (number(unknown[1]) if unknown else 0)
        least = kinds["FREE flags 0x0"] + kinds["RELEASE"] - kinds["RESTORE"]
        self.assertLessEqual(least, frees)
        self.assertLessEqual(frees, least + kinds["FREE flags nested"] + kinds["UNMAP"])
        announced = re.findall(r"^chunk .*: EVENTS, .* records (\d+)$", text, re.M)
        self.assertEqual(sum(map(int, announced)), sum(kinds.values()))

    def check(self, *argv):
        for mode, options in MODES.items():
            with self.subTest(mode=mode):
                trace, _ = self.record(*argv, options=options)
                text = self.dump_whole(trace)
                self.assertIn(", stacks %s, " % mode, text.splitlines()[0])
                self.check_counts(trace, text)
                self.dump_whole(trace, full=True)


@either_backend
class ReaderTest(BothReaders):
    def test_threads(self):
        self.check(self.sample("threads"))

    def test_realloc(self):
        self.check(self.sample("realloc"))

    def test_cxx(self):
        self.check(self.sample("cxx"))

    def test_python(self):
        self.check("/usr/bin/python3", "-c", "import json; json.dumps(list(range(100)))")

    def test_middle_chunk_damaged(self):
        trace, _ = self.record(self.sample("threads"))
        with open(trace, "rb") as whole:
            content = bytearray(whole.read())
        starts = chunk_starts(content)
        start = starts[len(starts) // 2]
        content[start + CHUNK_HEADER:start + CHUNK_HEADER + 16] = b"overwritten!!!!!"
        ours, notes = self.dump_both(self.write("damaged.mlk", bytes(content)))
        self.assertEqual(ours.status, 0)
        self.assertRegex(ours.out, r"\nchunk 0x%x: .*\n  damaged, stepped over\nchunk " % start)
        self.assertRegex(ours.out, r"\nend: chunks %d, lost 1, unknown 0, bytes skipped 0, ended\n$"
                         % (len(starts) - 1))
        self.assertEqual(notes, "trace_reader: chunk at %d: CRC\n" % start)

    def test_header_damaged(self):
        trace, _ = self.record(self.sample("threads"))
        with open(trace, "rb") as whole:
            content = bytearray(whole.read())
        starts = chunk_starts(content)
        start, after = starts[len(starts) // 2:][:2]
        content[start + 20] ^= 1
        ours, _ = self.dump_both(self.write("damaged.mlk", bytes(content)))
        self.assertRegex(ours.out, r"\nskipped 0x%x: %d bytes that" % (start, after - start))
        self.assertRegex(ours.out, r"\nend: chunks %d, lost 1, unknown 0, bytes skipped %d, ended\n$"
                         % (len(starts) - 1, after - start))


@both_backends
class WordsTest(BothReaders):
    def test_single(self):
        self.check(self.sample("single"))

    def test_dlopen(self):
        self.check(self.sample("dlopen"))

    def check_words(self, text, kept):
        """Behind the first @kept ones, words of stacks point to code or near the stack.  Returns
        how many of the first do not."""
        code = [(int(start, 16), int(end, 16)) for start, end in
                re.findall(r"^    ([0-9a-f]+)-([0-9a-f]+) r?-?w?-?x", text, re.M)]
        self.assertTrue(code)
        others = 0
        for regs, words in parse_allocs(text):
            for i, word in enumerate(words + (() if kept else tuple(regs))):
                if word and abs(word - regs[SP]) > NEAR_STACK and \
                        not any(start <= word < end for start, end in code):
                    self.assertLess(i, kept, "%x" % word)
                    others += 1
        return others

    def test_words_left_out(self):
        # With few executable mappings: where there are many, a writer may keep what is between.
        program = self.sample("single")
        texts = {}
        for mode, options in MODES.items():
            trace, _ = self.record(program, options=options)
            texts[mode] = self.dump_whole(trace, full=True)
        self.assertGreater(self.check_words(texts["filtered"], KEPT_WORDS), 0)
        self.assertEqual(self.check_words(texts["redacted"], 0), 0)
        self.assertGreater(self.check_words(texts["raw"], sys.maxsize), 0)
