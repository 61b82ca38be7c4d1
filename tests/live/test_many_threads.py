"""More threads at once than there are slots for their state: each keeps its own, also where another
has the slot, and a thread that has another's kernel stack begins anew."""

import collections
import os
import re
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "load"))

from loadtest import LoadCase
from mleaktest import LONG, TESTS, needs_bpf, parse_totals, read_line
import xlated

THREADS, WAVES = 2500, 2


def owned_slots(pid):
    """How many slots of the recorder @pid are somebody's: bpf/state.h."""
    number = next(number for kind, number, _ in xlated.linked(pid) if kind == "uprobe_multi")
    code = xlated.program(number)
    places = {(insn.imm, code[at + 1]) for at, insn in enumerate(code)
              if isinstance(insn, xlated.Instruction) and insn.opcode == 0x18 and insn.src == 2}
    # Other variables lie before them, and at no such multiple but the first.
    for array, base in sorted(places, reverse=True):
        words = xlated.map_value(array, 0) or b""
        end = base + xlated.SLOTS * xlated.SLOT_BYTES
        if base % xlated.SLOT_BYTES == 0 and end <= len(words):
            return sum(struct.unpack_from("<Q", words, at)[0] != 0
                       for at in range(base, end, xlated.SLOT_BYTES))
    raise AssertionError("no slots")


@needs_bpf
class ManyThreadsTest(LoadCase):
    def setUp(self):
        super().setUp()
        built = self.finish(self.spawn(["gcc", "-O2", "-Wall", "-pthread", "-o", "target",
                                        os.path.join(TESTS, "live", "many_threads.c")]))
        self.assertEqual(built.status, 0, built.err)

    def assert_left(self, pid):
        """Nobody but the main thread has a slot, once the others are quite gone."""
        end = time.monotonic() + LONG
        while owned_slots(pid) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(owned_slots(pid), 1)

    def run_waves(self, *options):
        """(the trace, [owned slots in each wave], [tid of each thread]) of all waves."""
        target = self.spawn(["./target", str(THREADS), str(WAVES)], stdin=-1)
        self.assertEqual(read_line(target), "ready")
        mleak, trace = self.attach(target, *options)
        owned = []
        for _ in range(WAVES):
            target.stdin.write(b"\n")
            self.assertEqual(read_line(target), "all")
            owned.append(owned_slots(mleak.pid))
            target.stdin.write(b"\n")
        self.assertEqual(read_line(target), "joined")
        self.assert_left(mleak.pid)
        target.stdin.write(b"\n")
        out = self.finish(target).out
        self.assertEqual(self.finish(mleak).status, 0)
        return trace, owned, [int(tid) for tid in re.findall(r"^\d+ (\d+)$", out, re.M)]

    def test_each_thread_has_its_own_calls(self):
        trace, owned, tids = self.run_waves()
        self.assertEqual(len(tids), THREADS * WAVES)
        for nr in owned:
            self.assertGreater(nr, THREADS / 10, "no thread has a slot")
        dump = self.report(trace, "--dump")
        event = r"^  %s flags \S+, tgid \d+, tid (\d+), time \d+, addr (\S+)"
        tids_of = {}
        for tid, _, size in re.findall(event % "ALLOC" + ", size (\\d+)", dump, re.M):
            tids_of.setdefault(int(size), []).append(int(tid))
        for i, tid in enumerate(tids):
            self.assertEqual(tids_of.get(1000 + i), [tid], "thread %d" % i)
            self.assertEqual(tids_of.get(20000 + i), [tid], "thread %d" % i)
        self.assertEqual(collections.Counter(tids_of[7]), collections.Counter(tids))
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        self.assertNotIn("unknown frees", self.report(trace))
        # Where the kernel puts their stacks is not for us to say.
        if min(owned) >= THREADS:
            self.skipTest("no two threads met in a slot: all else is right")


if __name__ == "__main__":
    import unittest
    unittest.main()
