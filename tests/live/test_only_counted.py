"""Recordings in which allocations are only counted: they pass no check, and their threads have names.
The truth is what the target says that it allocated."""

import os

from backends import both_backends
from mleaktest import TESTS, needs_bpf, read_line
from test_thread_accounts import AccountsCase


@both_backends
class CheckTest(AccountsCase):
    def check(self, status, trace, *args):
        result = self.mleak("report", *args, trace)
        self.assertEqual(result.status, status, result.err)
        return result

    def assert_passes_no_check(self, trace, counted):
        words = "nothing was recorded in full, %d allocations were only counted" % counted
        for option in "--fail-on-leak", "--fail-on=growing":
            for more in [], ["--folded"], ["--growth"], ["--at", "0.01s"]:
                if more[:1] != ["--at"] or option == "--fail-on-leak":
                    self.assertIn(words, self.check(2, trace, option, *more).err)
        for more in [], ["--growth"], ["--by", "function"], ["--flat"]:
            text = self.check(0, trace, *more).out
            self.assertIn("\nnothing was recorded in full: %d allocations were only counted; " % counted, text)
            self.assertNotIn("no outstanding blocks", text)
            self.assertNotIn("nothing grew", text)
        warned = self.check(0, trace, "--folded").err
        self.assert_one_message(warned, "was recorded in full: %d allocations were only counted" % counted)
        result = self.mleak("diff", "--fail-on-leak", trace, trace)
        self.assertEqual(result.status, 2, result.err)
        self.assertIn(words, result.err)

    def counted(self, *options):
        trace, counts = self.run_target(options, "0 keep 30 101", "1 keep 7 103", "1 drop 5")
        rows = self.groups(trace)["groups"]
        counted = sum(row["allocated"]["blocks"] for row in rows)
        self.assertGreaterEqual(counted, counts["allocs"])  # a thread's start allocates, too
        return trace, counted

    def test_nothing_was_chosen(self):
        self.assert_passes_no_check(*self.counted("--choose", "counted"))

    def test_a_trigger_that_was_not_reached(self):
        self.assert_passes_no_check(*self.counted("--trigger", "1G"))

    def test_what_was_recorded_is_judged(self):
        """A trigger that one thread reached: the other's blocks are a matter of choice."""
        trace, _ = self.counted("--trigger", "2000")
        self.check(1, trace, "--fail-on-leak")
        self.check(0, trace, "--fail-on-leak=1M")


@needs_bpf
class AttachedTest(AccountsCase):
    def test_the_recorder_does_not_say_that_nothing_grew(self):
        target, mleak, _ = self.attach_to_target("--choose", "counted")
        self.tell(target, "0 keep 30 101")
        target.stdin.close()
        err = self.finish(mleak).err
        self.assertNotIn("nothing grew", err)
        self.assertIn("growing: not told of allocations that were only counted", err)


@needs_bpf
class NamesTest(AccountsCase):
    """Also of threads that were there before, that end at once, and of children."""

    def say(self, target, letter):
        target.stdin.write(letter)
        name, tid, blocks, size = read_line(target).split()
        return int(tid), (name, int(blocks), int(size))

    def test_threads_that_were_only_counted_have_names(self):
        self.build("named", os.path.join(TESTS, "live", "named_threads.c"))
        target = self.spawn(["./named"], stdin=-1)
        self.assertEqual(read_line(target), "ready")
        mleak, trace = self.attach(target, "--choose", "counted", "--follow")
        truth = dict(self.say(target, letter) for letter in (b"b", b"n", b"f", b"w"))
        target.stdin.close()
        self.assertEqual(self.finish(mleak).status, 0)
        rows = {row["tid"]: row for row in self.groups(trace)["groups"]}
        for tid, (name, blocks, size) in truth.items():
            self.assertEqual(rows[tid]["thread_name"], name)
            self.assertEqual(rows[tid]["allocated"]["blocks"], blocks)
            self.assertEqual(rows[tid]["allocated"]["bytes"], size)
