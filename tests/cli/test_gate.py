"""--fail-on-leak as a check in CI: 1 for leaks alone, 2 where the trace does not tell, and --strict."""

import os
import resource

import forge
from mleaktest import MLEAK_FAST, TESTS, Case

LEAK = [(0x1000, 47), (0x2000, 53), (0x2000,)]
CLEAN = [(0x1000, 47), (0x2000, 53), (0x2000,), (0x1000,)]
GOLDEN = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
# As doc/trace-format.md 4.6 numbers them.
ALLOCS, FREES, RETURNS, EXECS, MODULES, UNMAPS, LOOKS = 0, 1, 4, 7, 9, 10, 13
SKIPPED_CHILDREN = 6


class GateCase(Case):
    def trace(self, trace, name="x.mlk"):
        return self.write(name, trace.bytes())

    def lossy(self, calls, lost, first=0, last=0):
        """A trace of @calls in which that was lost, in that time."""
        chunk = forge.events(calls)
        return self.trace(forge.small(calls, [forge.losses(first or chunk.first,
                                                           last or chunk.last, lost)]))

    def check(self, status, *args, naming=None):
        """The exit status of a report, and what it says of that; returns stderr."""
        for more in [], ["--folded"], ["--growth"]:
            with self.subTest(args=args, more=more):
                result = self.mleak("report", "--fail-on-leak", *more, *args)
                self.assertEqual(result.status, status, result.err)
                if naming:
                    self.assertRegex(result.err, "(?m)^mleak: (?!warning).*" + naming)
        self.assertEqual(self.mleak("report", *args).status, 0)
        return result.err


class GrowthTest(GateCase):
    """Where events are missing, it is not known that nothing grew."""

    def answer(self, trace):
        return self.report(trace).rstrip().splitlines()[-1]

    def test_what_was_lost_may_have_grown(self):
        self.assertIn("nothing grew all the time; ", self.answer(self.trace(forge.small(LEAK))))
        self.assertIn("nothing was seen to grow all the time, but 1 event was lost; ",
                      self.answer(self.lossy(LEAK, {ALLOCS: 1})))
        self.assertIn(", but 3 events were lost; ", self.answer(self.lossy(LEAK, {FREES: 3})))


class FailureTest(GateCase):
    """1 is for leaks: what fails otherwise is 2."""

    def test_an_output_that_is_full(self):
        leak = self.trace(forge.small(LEAK))
        for args in (["report", leak], ["report", "--fail-on-leak", leak], ["diff", leak, leak],
                     ["report", "--dump", leak], ["info", leak], ["script", leak], ["--help"],
                     ["report", "--help"]):
            with self.subTest(args=args), open("/dev/full", "wb") as full:
                result = self.finish(self.spawn([self.program, *args], stdout=full))
                self.assertEqual(result.status, 2, result.err)
                self.assert_one_message(result.err, naming="No space left on device")

    def test_memory_that_is_short(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (32 << 20, 32 << 20))

        many = [forge.blocks(200000, 0x10000 + 16 * 200000 * n) for n in range(5)]
        leak = self.trace(forge.small(LEAK, many))
        for args in (["report", "-j1", leak], ["report", "-j1", "--fail-on-leak", leak],
                     ["diff", "-j1", leak, leak]):
            with self.subTest(args=args):
                result = self.finish(self.spawn([MLEAK_FAST, *args], preexec_fn=limit))
                self.assertEqual(result.status, 2, result.err)
                self.assertIn("needs more memory than there is", result.err)


class GateTest(GateCase):
    def test_leaks_are_1_and_none_is_0(self):
        self.check(1, self.trace(forge.small(LEAK)))
        self.assertEqual(self.check(0, self.trace(forge.small(CLEAN))), "")

    def test_a_trace_that_was_cut_does_not_pass(self):
        whole = forge.small(CLEAN).bytes()
        for cut in len(whole) - 1, len(whole) - 113, whole.index(forge.CHUNK_MAGIC, 200) + 10:
            self.check(2, self.write("x.mlk", whole[:cut]), naming="it has no end")
        # what is there may be freed behind the cut
        whole = forge.small(LEAK).bytes()
        self.check(2, self.write("x.mlk", whole[:-1]), naming="it has no end")

    def test_a_trace_that_lost_its_events_does_not_pass(self):
        for calls in CLEAN, LEAK:
            trace = forge.small(calls)
            trace.of(forge.EVENTS)[0].wrong = b"x"
            self.check(2, self.trace(trace), naming="1 of its chunks is lost")
            trace = forge.small(calls)
            trace.chunks.pop(1)
            trace.chunks[-1].seq = 3
            trace.indexed = False
            self.check(2, self.trace(trace), naming="2 of its chunks are lost")

    def test_what_was_lost_while_recording_does_not_pass(self):
        for kind in ALLOCS, FREES, RETURNS, UNMAPS:
            self.check(2, self.lossy(CLEAN, {kind: 3}), naming="3 events were lost")
        self.check(2, self.lossy(CLEAN, {EXECS: 2}),
                   naming="2 programs or processes were not recorded")

    def test_children_that_were_not_recorded_do_not_pass(self):
        """Of a command; one that attaches to a process has chosen it."""
        for whole_life, status in (1, 2), (0, 0):
            chunk = forge.events(CLEAN)
            trace = forge.small(CLEAN, [forge.losses(chunk.first, chunk.last, {}, {SKIPPED_CHILDREN: 3})],
                                whole_life=whole_life)
            self.check(status, self.trace(trace), naming="3 child processes.*--follow" if status else None)

    def test_blocks_that_were_not_looked_at_do_not_pass(self):
        self.check(2, self.lossy(CLEAN, {LOOKS: 1}), naming="1 process were not checked for overruns")

    def test_a_recorder_that_could_not_write_on_does_not_pass(self):
        self.check(2, self.trace(forge.small(CLEAN, reason=4)), naming="could not continue to write")
        self.check(0, self.trace(forge.small(CLEAN, reason=5)))

    def test_a_leak_that_is_certain_is_1_whatever_was_lost(self):
        last = forge.events(LEAK).last
        self.check(1, self.lossy(LEAK, {ALLOCS: 3}))
        self.check(2, self.lossy(LEAK, {FREES: 1}))  # it may have been that of the block
        # they were lost before it was given out
        self.check(1, self.lossy([(0x3000, 5), (0x3000,)] + LEAK, {FREES: 1}, 1, forge.SECOND))
        self.check(2, "--at", "0s", self.lossy(LEAK, {FREES: 1}))
        self.check(1, "--at", "0s", self.lossy(LEAK, {FREES: 1}, last, last))

    def test_a_block_that_may_have_been_freed_counts_in_no_threshold(self):
        trace = self.lossy(LEAK, {FREES: 1})
        for limit, status in (("46", 2), ("47", 2)):
            result = self.mleak("report", "--fail-on-leak=" + limit, trace)
            self.assertEqual(result.status, status, result.err)

    def test_what_was_lost_after_the_moment_does_not_matter(self):
        trace = self.lossy(CLEAN, {ALLOCS: 3}, 5 * forge.SECOND, 6 * forge.SECOND)
        self.check(0, "--at", "1s", trace)
        self.check(2, trace)

    def test_a_name_that_nothing_has_does_not_pass(self):
        for args in ["--function", "nosuch"], ["--module", "nosuch"], ["--thread", "nosuch"]:
            self.check(2, *args, GOLDEN, naming="nothing in the trace matches the options")
        self.check(1, "--function", "^main$", GOLDEN)
        self.check(0, "--function", "churn", GOLDEN)

    def test_names_that_were_not_read_hide_what_is_looked_for(self):
        trace = self.lossy(CLEAN, {MODULES: 1})
        self.check(0, trace)
        self.check(2, "--module", "?", "--min-bytes", "1", trace)

    def test_a_difference(self):
        def diff(*args):
            return self.mleak("diff", "--fail-on-leak", *args)

        clean = self.trace(forge.small(CLEAN), "clean.mlk")
        leak = self.trace(forge.small(LEAK), "leak.mlk")
        cut = self.write("cut.mlk", forge.small(CLEAN).bytes()[:-1])
        self.assertEqual([diff(a, b).status for a, b in
                          ((clean, clean), (clean, leak), (leak, clean), (leak, leak))],
                         [0, 1, 0, 0])
        for a, b in (clean, cut), (cut, clean), (cut, leak):
            result = diff(a, b)
            self.assertEqual(result.status, 2)
            self.assertIn("'%s' does not tell whether anything leaked: it has no end" % cut,
                          result.err)
        self.assertEqual(diff("--function", "nosuch", GOLDEN, GOLDEN).status, 2)
        self.assertEqual(self.mleak("diff", cut, cut).status, 0)

    def test_strict_makes_warnings_failures(self):
        whole = forge.small(CLEAN).bytes()
        behind = self.write("behind.mlk", whole + b"\0" * 10)  # is skipped, and no more than that
        self.check(0, behind)
        for args in ["report"], ["report", "--fail-on-leak"], ["diff", behind]:
            result = self.mleak(*args, behind)
            self.assertEqual(result.status, 0, result.err)
            result = self.mleak(*args, "--strict", behind)
            self.assertEqual(result.status, 2)
            self.assertIn("--strict", result.err.splitlines()[-1])
        self.assertEqual(self.mleak("report", "--strict", "--fail-on-leak",
                                    self.write("x.mlk", whole)).status, 0)
        # a leak is one all the same
        self.assertEqual(self.mleak("report", "--strict", "--fail-on-leak", self.write(
            "y.mlk", forge.small(LEAK).bytes() + b"\0")).status, 1)
