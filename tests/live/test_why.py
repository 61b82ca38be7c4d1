"""Who holds memory, as the program knows that has it: its variables, a stack, or nobody."""

import json

from backends import both_backends
from reachtest import ReachCase


@both_backends
class WhyTest(ReachCase):
    def setUp(self):
        super().setUp()
        self.trace, said = self.reach(self.build("holders_target"))
        self.said = [line.split() for line in said]

    def lines(self, word):
        return [words[1:] for words in self.said if words[0] == word]

    def text(self, *what):
        """What `mleak why` prints."""
        result = self.mleak("why", *what, self.trace)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def why(self, *what):
        document = json.loads(self.text("--format=json", *what))
        self.assertEqual(document["schema"], "mleak-why")
        self.assertEqual(len(document["processes"]), 1)
        return document["processes"][0]

    def name_of(self, root):
        return root["kind"], root["name"] if root["kind"] in ("variable", "thread-local") else "-"

    def knows_stacks(self):
        """The preloaded library has copies of stacks, which hold what is on them."""
        return not getattr(self, "preloaded", False)

    def test_each_root_holds_what_the_program_says(self):
        told = {(kind, name): (int(size), int(blocks)) for kind, name, size, blocks in self.lines("root")
                if self.knows_stacks() or name == "cache"}
        rows = self.why()["holders"]
        found = {self.name_of(row): (row["bytes"], row["blocks"]) for row in rows}
        self.assertEqual({key: found.get(key) for key in told}, told)
        cache = next(row for row in rows if row.get("name") == "cache")
        self.assertEqual(cache["file"], "holders_target.c")
        self.assertTrue(cache["module"].endswith("/holders_target"))
        self.assertEqual(sum(first["bytes"] for first in cache["first_blocks"]), cache["bytes"])
        self.assertEqual(sum(first["first"] for first in cache["first_blocks"]), 101)
        if self.knows_stacks():
            self.assertRegex(self.text(), r"(?m)% +58  thread-local variable first_local \(holders_target.c\) in holders_target$")
        sums = json.loads(self.report(self.trace, "--format=json"))["reach"][0]["blocks"]
        self.assertEqual(sum(row["bytes"] for row in rows),
                         sum(sums[word]["bytes"] for word in sums if word != "none"))
        text = self.text()
        self.assertRegex(text, r"(?m)^ +.* KiB +\d+\.\d % +2,018  variable cache \(holders_target.c\) in holders_target$")

    def test_the_way_to_a_block_is_the_programs(self):
        if not self.knows_stacks():
            return
        (name, *steps), = self.lines("way")
        told = list(zip(map(int, steps[::2]), (int(address, 16) for address in steps[1::2])))
        answer = self.why(steps[-1])
        self.assertEqual((answer["root"]["name"], answer["verdict"]), (name, "held"))
        self.assertEqual([(step["offset"], step["address"]) for step in answer["path"]], told)
        self.assertEqual([step["interior"] for step in answer["path"]], [False] * 3)
        inside = self.why("0x%x" % (int(steps[-1], 16) + 60))
        self.assertEqual(inside["path"], answer["path"])
        text = self.text("--full", steps[-1])
        self.assertRegex(text, r"It is held by: variable chain \(holders_target.c\) in holders_target\n"
                               r" +\+0x8 +-> %s +32 bytes  get < make_chain" % steps[1])
        self.assertRegex(text, r"(?m)^ +make_chain  .*holders_target.c:\d+$")

    def test_blocks_of_a_stack_are_summed_up(self):
        # a copy of the stack may still have the block that was given out last
        copies = 0 if self.knows_stacks() else 2
        for function, kind, name, blocks in self.lines("stack"):
            held = self.why("^%s$" % function)["held"]
            self.assertEqual(self.name_of(held[0]["root"]), (kind, name))
            self.assertGreaterEqual(held[0]["blocks"], int(blocks) - copies)
            self.assertEqual(sum(row["blocks"] for row in held), int(blocks))
        text = self.text("get_value")
        self.assertRegex(text, r"%s of 1,009 blocks, 46\.[23] KiB, held by variable cache \(holders_target.c\)"
                         % ("1,009" if not copies else r"1,00[789]"))
        self.assertRegex(text, r"via get < fill_cache < main")
        # the same by the id of the stack
        stacks = json.loads(self.report(self.trace, "--format=json", "--function", "^get_value$"))["stacks"]
        self.assertGreaterEqual(self.why(stacks[0]["id"])["held"][0]["blocks"], 1009 - copies)

    def test_a_lost_block_has_a_leader(self):
        if not self.knows_stacks():
            return
        (block, leader), = self.lines("lost")
        answer = self.why(block)
        self.assertEqual((answer["root"]["kind"], answer["verdict"]), ("lost", "lost-with"))
        self.assertEqual([answer["path"][0]["address"], answer["path"][-1]["address"]], [int(leader, 16), int(block, 16)])
        self.assertIn("It is lost with the block %s, which leads it" % leader, self.text(block))
        self.assertIn("It is lost: no pointer", self.text(leader))

    def test_what_is_asked_for_in_vain(self):
        for what, reason in (("0x10", "in no block that was judged"), ("no_such_function", "no stack in"),
                             ("(", "no regular expression")):
            answer = self.mleak("why", what, self.trace)
            self.assertEqual(answer.status, 2)
            self.assertIn(reason, answer.err)
