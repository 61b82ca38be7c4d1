"""How many chunks of a damaged trace are lost: `mleak info` and `mleak report` say what was damaged."""

import os
import re

from mleaktest import Case
from unwindtest import CHUNK_HEADER, FILE_HEADER, GOLDEN, chunks_of


class DamageCountTest(Case):
    def places(self, data):
        """The offset and the chunk, of each with a payload."""
        at, found = FILE_HEADER, []
        for chunk in chunks_of(data):
            found.append((at, chunk))
            at += CHUNK_HEADER + len(chunk.payload)
        return [(at, chunk) for at, chunk in found if chunk.payload]

    def check(self, data, expected):
        trace = self.write("x.mlk", bytes(data))
        info = self.mleak("info", trace)
        report = self.mleak("report", trace)
        self.assertEqual((info.status, report.status), (0, 0), info.err + report.err)
        lost = [re.search(r"(?m)^chunks lost +(\d+)$", info.out),
                re.search(r"is damaged: (\d+) of its chunks (?:is|are) lost", report.err)]
        self.assertEqual([int(found[1]) if found else 0 for found in lost], [expected] * 2)

    def test_each_chunk_alone(self):
        for path in GOLDEN:
            with open(path, "rb") as file:
                whole = file.read()
            done = set()
            for at, chunk in self.places(whole):
                if chunk.type in done:
                    continue
                done.add(chunk.type)
                with self.subTest(trace=os.path.basename(path), type=chunk.type):
                    data = bytearray(whole)
                    data[at + CHUNK_HEADER + len(chunk.payload) // 2] ^= 0x11
                    self.check(data, 1)

    def test_chunks_of_all_types_and_one_that_is_missing(self):
        for path in GOLDEN:
            with self.subTest(trace=os.path.basename(path)), open(path, "rb") as file:
                data = bytearray(file.read())
                places = self.places(data)
                for at, chunk in places:
                    data[at + CHUNK_HEADER + len(chunk.payload) // 2] ^= 0x11
                data[places[1][0]] ^= 0x11
                self.check(data, len(places))

    def test_none(self):
        for path in GOLDEN:
            with open(path, "rb") as file:
                self.check(file.read(), 0)
