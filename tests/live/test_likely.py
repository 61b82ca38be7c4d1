"""Which stacks blocks from before the recording likely have, beside those that they had."""

import json
import os
import re
import signal
import subprocess

from mleaktest import needs_bpf, read_line, wait_until
from reachtest import ReachCase

ROUNDS, MORE, FIRST = 1009, 503, 23
# {function: (blocks in a round, bytes that can be used)}
LOST = {"lose_order": (1, 72), "lose_note": (1, 72), "lose_text": (1, 56), "get_inner": (1, 56),
        "lose_pair": (1, 104), "lose_often": (3, 168)}
FEW = 4  # blocks: a word on the stack or in a register may have stayed


@needs_bpf
class LikelyTest(ReachCase):
    def record(self):
        target = self.spawn([self.build("likely_target"), str(ROUNDS), str(MORE)],
                            stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        record = self.start_mleak("record", "--reach", "-o", self.path("x.mlk"), "-p", str(target.pid))
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "it is attached")
        target.stdin.write(b"x")
        target.stdin.flush()
        self.assertEqual(read_line(target), "ready")
        record.send_signal(signal.SIGINT)
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        return self.path("x.mlk")

    def older(self, *options):
        """{innermost function that is no allocator's, or None: blocks from before the recording}, and
        what is said of how likely that is."""
        document = json.loads(self.report(self.path("x.mlk"), "--format=json", *options))
        names = [frame["function"] for frame in document["frames"]]
        found, said = {}, set()
        for stack in document["stacks"]:
            functions = [names[i] for i in stack["frames"]]
            if functions[-1] != "[before the recording]":
                continue
            said.update(name for name in functions if name.startswith("[likely"))
            name = next((f for f in functions if re.match(r"(lose|keep|get)_", f)), None)
            found[name] = found.get(name, 0) + stack["outstanding"]["blocks"]
        return found, said, document

    def test_each_block_has_the_stack_of_those_like_it(self):
        self.record()
        found, said, document = self.older("--lost")
        unknown = found.pop(None)
        self.assertEqual(set(found), set(LOST))
        for name, (blocks, _) in LOST.items():
            # what another stack has allocated seldom is taken for what this one has often
            true = ROUNDS * (blocks + (name == "lose_often"))
            self.assertLessEqual(found[name], true)
            self.assertGreaterEqual(found[name], true - FEW)
        # of two stacks that are as likely none is named, nor one of which nothing was recorded
        self.assertLessEqual(unknown, 2 * ROUNDS + FIRST)
        self.assertGreaterEqual(unknown, 2 * ROUNDS + FIRST - FEW)
        # how right that is of the blocks that were recorded: all but those of lose_seldom
        seldom = 168
        right = sum(blocks * size for blocks, size in LOST.values()) + 56  # of keep_text
        self.assertEqual(len(said), 1)
        share = float(re.match(r"\[likely: right for ([\d.]+) % of the bytes of known blocks\]$", said.pop())[1])
        self.assertAlmostEqual(share, 100 * right / (right + seldom), delta=0.3)
        likely = document["likely"]
        self.assertAlmostEqual(likely["guessed"]["bytes"], MORE * (right + seldom), delta=FEW * 168)
        self.assertAlmostEqual(likely["right"]["bytes"], MORE * right, delta=FEW * 168)

    def test_what_is_held_has_a_stack_by_who_holds_it(self):
        self.record()
        found = self.older("--verdict=held")[0]
        self.assertEqual(found["keep_text"], ROUNDS)
