"""Where probes are put in each allocator, by objdump's disassembly."""

import os
import re

from mleaktest import MLEAK_FAST, Case, needs_bpf
from test_allocators import LIBRARIES, PRELOADED

SITE = re.compile(r"^  (\S+) +0x([0-9a-f]+) +\+(\d+) +entry\S* +\S+ +(emulated|single-stepped[^\n,]*)"
                  r"(?:, arguments in (.*))?$", re.M)
EMULATED = re.compile(r"\t(push|j[a-z]+|call|nop\w*)\b")
COPY = re.compile(r"\tmov +%(r\w+),%(r\w+)$")
WRITE = re.compile(r"%(\w+)$")  # of what objdump names last
NUMBERED = re.compile(r"(r\d+)[dwb]?$")


def whole(register):
    """The register of 64 bits that has this one in it: rdi of edi."""
    if NUMBERED.match(register):
        return NUMBERED.match(register)[1]
    return "r" + register.lstrip("re")


def has_argument(register, number, code):
    """Is it that argument of the function whose instructions these are, behind all of them?"""
    holders = {("rdi", "rsi", "rdx")[number]}
    for text in code:
        copy = COPY.search(text)
        written = WRITE.search(text)
        if copy and copy[1] in holders:
            holders.add(copy[2])
        elif re.match(r"\tmul", text):
            holders -= {"rax", "rdx"}
        elif written and not re.match(r"\t(test|cmp)", text):
            holders.discard(whole(written[1]))
    return register in holders


@needs_bpf
class SiteTest(Case):
    """What --dry-run prints, against objdump's disassembly."""

    program = MLEAK_FAST

    def check(self, library, least_emulated):
        environment = dict(os.environ)
        if library:
            environment["LD_PRELOAD"] = library
        result = self.mleak("record", "--dry-run", "--", self.sample("single"), env=environment)
        self.assertEqual(result.status, 0, result.err)
        path = re.search(r"^(/\S+): ", result.out, re.M)[1]
        part = result.out.split("\n/")[1]
        sites = SITE.findall(part)
        self.assertGreater(len(sites), 8, result.out)
        emulated = 0
        for name, start, offset, cost, moved in sites:
            with self.subTest(function=name):
                code = self.disassemble(path, int(start, 16), int(offset) + 16)
                self.assertIn(int(start, 16) + int(offset), code, "inside an instruction")
                here = code[int(start, 16) + int(offset)]
                self.assertEqual(bool(EMULATED.search(here)), cost == "emulated", here)
                before = [text for at, text in code.items() if at < int(start, 16) + int(offset)]
                for text in before:
                    self.assertNotRegex(text, r"\t(push|pop|call|ret|j)|,%[re]?sp$")
                for number, register in enumerate(moved.split(", ") if moved else ["rdi"]):
                    self.assertTrue(has_argument(register, number, before), before)
                emulated += cost == "emulated"
        self.assertGreaterEqual(emulated, least_emulated)
        return {name: cost for name, start, offset, cost, moved in sites}

    def disassemble(self, path, start, length):
        """Address to instruction; in these libraries file offset and address of code are the same."""
        result = self.finish(self.spawn(["objdump", "-d", "--no-show-raw-insn", "--start-address=%d" % start,
                                         "--stop-address=%d" % (start + length), path]))
        found = re.findall(r"^ +([0-9a-f]+):(\t.*?)\s*(?:#.*|<.*)?$", result.out, re.M)
        return {int(at, 16): text for at, text in found}

    def test_glibc(self):
        self.check(None, 8)

    def jumps_of_operators(self, library):
        """How many jumps tell what an operator new returns, so that its `ret` need not be probed."""
        result = self.mleak("record", "--dry-run", "--", self.sample("single"),
                            env=dict(os.environ, LD_PRELOAD=library))
        return int(re.search(r"marked ret: .*, and (\d+) jumps? that", result.out)[1])

    def test_jemalloc(self):
        self.check(LIBRARIES + PRELOADED["jemalloc"], 15)
        self.assertGreaterEqual(self.jumps_of_operators(LIBRARIES + PRELOADED["jemalloc"]), 4)

    def test_tcmalloc(self):
        self.check(LIBRARIES + PRELOADED["tcmalloc"], 15)
        self.assertGreaterEqual(self.jumps_of_operators(LIBRARIES + PRELOADED["tcmalloc"]), 4)

    def test_mimalloc(self):
        costs = self.check(LIBRARIES + PRELOADED["mimalloc"], 15)
        for name in "malloc", "calloc", "realloc", "free":
            self.assertEqual(costs[name], "emulated", name)
        self.assertNotIn("_ZdlPvRKSt9nothrow_t", costs, "it only jumps to free")
