"""Ids of stacks: the same in all traces of one build; made of build-ids and places, as readelf and
the report's addresses say them.  And the offsets of calls in functions, as nm says them."""

import csv
import io
import json
import os
import re
import shutil
import subprocess

from backends import both_backends
from mleaktest import Case, parse_answers, parse_folded


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=True).stdout
    return bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))


def hash_of(frames):
    """FNV-1a of the @frames, (build-id, address) each, as doc/report-json.md and stack_id.h have it."""
    value = 0xcbf29ce484222325
    for ident, address in frames:
        kind = b"\1" + ident  # as the trace says that it is a build-id
        for byte in bytes([len(kind)]) + kind + address.to_bytes(8, "little"):
            value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return "%016x" % value


@both_backends
class StackIdTest(Case):
    def ids(self, trace, *args):
        """The id of each stack and its bytes."""
        document = json.loads(self.report(trace, "--format=json", *args))
        return sorted((stack["id"], stack["outstanding"]["bytes"]) for stack in document["stacks"])

    def record_as(self, name, program):
        trace = self.path(name)
        result = self.mleak("record", "-q", "-o", trace, "--", program)
        self.assertEqual(result.status, 0, result.err)
        return trace, result.out

    def test_they_are_of_the_build(self):
        program = self.sample("cxx")
        one, _ = self.record_as("1.mlk", program)
        two, _ = self.record_as("2.mlk", program)
        os.mkdir(self.path("elsewhere"))
        other = shutil.copy(program, self.path("elsewhere/renamed"))
        subprocess.run(["strip", other], check=True)
        three, _ = self.record_as("3.mlk", other)
        ids = self.ids(one)
        self.assertGreater(len(ids), 2)
        self.assertEqual(self.ids(two), ids)
        self.assertEqual(self.ids(three), ids)
        self.assertEqual(self.ids(one, "--no-demangle", "--inline"), ids)
        self.assertFalse(set(self.ids(self.record_as("4.mlk", self.sample("single"))[0])) & set(ids))

        rows = list(csv.DictReader(io.StringIO(self.report(one, "--format=csv"))))
        self.assertEqual(sorted((row["id"], int(row["outstanding_bytes"])) for row in rows), ids)

    def test_they_are_made_of_build_ids_and_addresses(self):
        trace, _ = self.record_as("x.mlk", self.sample("cxx"))
        document = json.loads(self.report(trace, "--format=json", "--addresses"))
        places = document["frames"]
        found = {}
        for place in places:
            if place["module"].startswith("/") and place["module"] not in found:
                found[place["module"]] = build_id(place["module"])
        for stack in document["stacks"]:
            frames = [places[i] for i in stack["frames"]]
            self.assertEqual(stack["id"], hash_of(
                [(found[f["module"]], int(f["function"].rpartition("+0x")[2], 16)) for f in frames]))

    def test_one_can_be_chosen(self):
        trace, said = self.record_as("x.mlk", self.sample("cxx"))
        answers = parse_answers(said)
        for ident, size in self.ids(trace):
            with self.subTest(id=ident):
                stack, = parse_folded(self.report(trace, "--folded", "--stack", ident))
                self.assertEqual(stack.bytes, size)
        self.assertLessEqual({a.bytes for a in answers}, {size for _, size in self.ids(trace)})
        text = self.report(trace, "--stack", self.ids(trace)[0][0])
        self.assertIn("from the stack with the id " + self.ids(trace)[0][0], text)
        result = self.mleak("report", "--stack", "123", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="has the id 0000000000000123")
        for wrong in "", "xyz", "0x12", "1" * 17:
            self.assertEqual(self.mleak("report", "--stack", wrong, trace).status, 2)

    def test_offsets_are_in_functions(self):
        program = self.sample("single")
        trace, _ = self.record_as("x.mlk", program)
        symbols = dict((name, int(address, 16)) for address, name in re.findall(
            r"(?m)^([0-9a-f]+) [tT] (\w+)$", subprocess.run(["nm", program + ".debug"], stdout=subprocess.PIPE,
                                                           text=True, check=True).stdout))
        plain, = parse_folded(self.report(trace, "--folded"))
        offsets, = parse_folded(self.report(trace, "--folded", "--offsets"))
        addresses, = parse_folded(self.report(trace, "--folded", "--addresses"))
        checked = 0
        for name, place, address in zip(plain.frames, offsets.frames, addresses.frames):
            function, _, offset = place.rpartition("+0x")
            self.assertEqual(function, name)
            module, _, where = address.rpartition("+0x")
            if module == "single":
                self.assertEqual(symbols[name] + int(offset, 16), int(where, 16))
                checked += 1
        self.assertGreaterEqual(checked, 3)
        self.assertIn("leak_here+0x", self.report(trace, "--offsets", "--function", "^leak_here$"))
        result = self.mleak("report", "--offsets", "--addresses", trace)
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, naming="--offsets")
