"""Filters and triggers: what is left out is what was to be left out, all of it is counted, and a
sample gives the truth on average.  The truth is what the target was told to do, and counted."""

import collections
import math
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "load"))

from loadtest import LoadCase
from mleaktest import LONG, TESTS, needs_bpf, number, parse_totals, read_line
import xlated

REFUSED = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
static volatile size_t too_much = SIZE_MAX / 2;
__attribute__((noinline, noipa)) static void *take(void)
{
	void *block = malloc(47);
	__asm__ volatile("" : "+r"(block)); /* or it is a jump */
	return block;
}
static void *refuse(void *block) { return realloc(block, too_much); }
int main(void)
{
	static void *blocks[500];
	void *moved;
	for (int i = 0; i < 500; i++) {
		pthread_t thread;
		blocks[i] = take();
		pthread_create(&thread, NULL, refuse, blocks[i]);
		pthread_join(thread, &moved);
		if (moved)
			return 1;
	}
	for (int i = 0; i < 500; i++)
		free(blocks[i]);
	return 0;
}
"""

# So many standard errors off, by chance in one of 500 million drawings.
SIGMAS = 6

Event = collections.namedtuple("Event", "kind tid time addr size nested")
Skipped = collections.namedtuple("Skipped", "nr bytes")


class FilterCase(LoadCase):
    def setUp(self):
        super().setUp()
        self.build("target", os.path.join(TESTS, "live", "filter_target.c"))

    def build(self, program, source, *flags):
        built = self.finish(self.spawn(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source,
                                        *flags]))
        self.assertEqual(built.status, 0, built.err)

    def run_target(self, options, *commands):
        """Record the target's whole life with @options; the trace, and the target's counts."""
        trace, out = self.record("./target", *commands, options=options)
        return trace, self.counts(out)

    def counts(self, line):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}

    def attach(self, target, *options):
        """Start mleak on @target, and wait for the trace: it gets its name when the probes stand."""
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        end = time.monotonic() + LONG
        while not os.path.exists(trace):
            if mleak.poll() is not None:
                self.fail("mleak ended at once: %s" % (self.finish(mleak),))
            self.assertLess(time.monotonic(), end, "mleak attached nothing")
            time.sleep(0.01)
        return mleak, trace

    def attach_to_target(self, *options):
        """Start the target, and mleak on it with @options, given once the target stands."""
        target = self.spawn(["./target"], stdin=-1)
        self.tell(target, "0 tid 0")
        mleak, trace = self.attach(target, *options)
        return target, mleak, trace

    def tell(self, target, command):
        """Have @target obey @command; returns what it prints, but "done"."""
        target.stdin.write(command.encode() + b"\n")
        lines = []
        while not lines or lines[-1] != "done":
            lines.append(read_line(target))
        return lines[:-1]

    def tid(self, target, thread):
        return int(self.tell(target, "%d tid 0" % thread)[0].split()[1])

    def end(self, target, mleak):
        """Let the target end, and mleak with it; what the target counted."""
        target.stdin.close()
        line = read_line(target)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        return self.counts(line)

    def map_id(self, mleak, name):
        """The number of mleak's map called @name."""
        for fd in os.listdir("/proc/%d/fdinfo" % mleak.pid):
            with open("/proc/%d/fdinfo/%s" % (mleak.pid, fd)) as info:
                found = re.search(r"^map_id:\s*(\d+)$", info.read(), re.M)
            if found and "name %s " % name in xlated.bpftool("map", "show", "id", found[1]):
                return found[1]
        raise AssertionError("mleak has no map " + name)

    def dump(self, trace):
        return self.mleak("report", "--dump", trace).out

    def events(self, dump):
        pattern = (r"^  (ALLOC|FREE|RELEASE|RESTORE|UNMAP) flags (\S+), tgid \d+, tid (\d+), "
                   r"time (\d+), addr (\S+?)(?:, size (\d+).*)?$")
        return [Event(kind, int(tid), int(time), addr, int(size or 0), flags == "nested")
                for kind, flags, tid, time, addr, size in re.findall(pattern, dump, re.M)]

    def sizes(self, events, kind="ALLOC"):
        return collections.Counter(e.size for e in events if e.kind == kind)

    def skipped(self, dump):
        """What was left out, by kind, as the trace's last figures say."""
        lines = [re.findall(r"^  SKIPPED %s(.*)$" % what, dump, re.M) for what in ("(?!B)", "BYTES ")]
        nr, sizes = [dict(re.findall(r"(\w+) (\d+)", found[-1])) if found else {}
                     for found in lines]
        return collections.defaultdict(lambda: Skipped(0, 0), {
            kind: Skipped(int(n), int(sizes[kind])) for kind, n in nr.items()})

    def assert_no_unknown_free(self, trace):
        self.assertNotIn("unknown frees", self.report(trace))


@needs_bpf
class SizeTest(FilterCase):
    COMMANDS = ["0 keep 100 63", "0 keep 100 64", "0 drop 50", "0 keep 30 1000", "0 keep 7 1001",
                "0 drop 1", "0 keep 11 0"]

    def check(self, options, recorded, left_out):
        """@recorded: blocks allocated, and alive at the end, by size; @left_out: blocks, bytes."""
        trace, truth = self.run_target(options, *self.COMMANDS)
        dump = self.dump(trace)
        events = self.events(dump)
        self.assertEqual(self.sizes(events), {size: n for size, (n, _) in recorded.items()})
        self.assertEqual(self.skipped(dump)["size"], left_out)
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.allocations.blocks + left_out[0], truth["allocs"])
        self.assertEqual(totals.allocations.bytes + left_out[1], truth["alloc_bytes"])
        self.assertEqual(totals.outstanding.blocks, sum(n for _, n in recorded.values()))
        frees = sum(n - alive for n, alive in recorded.values())
        self.assertEqual(sum(e.kind == "FREE" for e in events), frees)
        self.assertEqual(self.skipped(dump)["free"].nr, truth["frees"] - frees)
        self.assert_no_unknown_free(trace)
        return self.report(trace)

    def test_smaller_blocks_are_left_out(self):
        text = self.check(["-z", "64"], {64: (100, 50), 1000: (30, 30), 1001: (7, 6)},
                          (111, 6300))
        self.assertIn("not recorded: blocks below 64 bytes (111 blocks, 6,300 bytes)\n", text)

    def test_larger_blocks_are_left_out(self):
        text = self.check(["-Z", "1000"],
                          {0: (11, 11), 63: (100, 100), 64: (100, 50), 1000: (30, 30)}, (7, 7007))
        self.assertIn("not recorded: blocks above 1,000 bytes (7 blocks, 7,007 bytes)\n", text)

    def test_both(self):
        text = self.check(["--min-size=64", "--max-block=1000"],
                          {64: (100, 50), 1000: (30, 30)}, (118, 13307))
        self.assertIn("not recorded: blocks below 64 or above 1,000 bytes (118 blocks, "
                      "13,307 bytes)\n", text)

    def test_without_filters_nothing_is_left_out(self):
        trace, _ = self.run_target([], *self.COMMANDS)
        self.assertNotIn("not recorded", self.report(trace))
        self.assertEqual(self.skipped(self.dump(trace)), {})

    def test_realloc_across_the_limit(self):
        # In place or not: the old block goes, the new one is another.
        trace, truth = self.run_target(
            ["-z", "100"], "0 keep 40 50", "0 grow 20 200", "0 grow 10 210", "0 grow 5 60",
            "0 fail 40", "0 drop 12")
        events = self.events(self.dump(trace))
        self.assertEqual(self.sizes(events), {200: 20, 210: 10})
        totals = parse_totals(self.report(trace))
        self.assertEqual(truth["live"], 28)
        # Dropped are 5 of 60, 5 of 210 and 2 of 200.
        self.assertEqual(totals.outstanding, (8, 8 * 200))
        self.assertEqual(sum(e.kind == "RELEASE" for e in events), 10 + 5 + 15)
        self.assertEqual(sum(e.kind == "RESTORE" for e in events), 15)
        self.assert_no_unknown_free(trace)

    def test_ranges_that_are_unmapped(self):
        trace, _ = self.run_target(["-z", "40K"], "0 map 5 9", "0 map 6 10")
        self.assertEqual(parse_totals(self.report(trace)).outstanding, (6, 6 * 9 * 4096))
        self.assert_no_unknown_free(trace)


@needs_bpf
class ForkTest(FilterCase):
    def test_a_child_may_free_what_its_parent_had(self):
        """Which of it was recorded is not known there: all such frees are in the trace, but say
        nothing of blocks that are not."""
        trace, _ = self.run_target(["--follow", "-z", "100"], "0 keep 30 200", "0 keep 20 50",
                                   "0 fork 40", "0 drop 25")
        found = collections.Counter(re.findall(
            r"^  (ALLOC|FREE) flags (?:(nested)|\S+), tgid (\d+), ", self.dump(trace), re.M))
        parent, child = dict.fromkeys(int(tgid) for _, _, tgid in found)  # whose event is the first
        self.assertEqual(found, {("ALLOC", "", str(parent)): 30, ("ALLOC", "", str(child)): 10,
                                 ("FREE", "", str(parent)): 5, ("FREE", "nested", str(child)): 40,
                                 ("FREE", "", str(child)): 3})
        self.assert_no_unknown_free(trace)


@needs_bpf
class ExecTest(FilterCase):
    def test_blocks_of_the_program_before_are_forgotten(self):
        """The second program's heap begins where the first one's did.  Its smaller blocks lie where
        recorded ones of the first lay, and are not recorded."""
        trace, _ = self.record("setarch", "-R", "./target", "0 keep 300 200", "0 exec 300",
                               options=["-z", "100"])
        dump = self.dump(trace)
        addresses = collections.Counter(e.addr for e in self.events(dump)
                                        if e.kind == "ALLOC" and e.size == 200)
        self.assertEqual(addresses.total(), 300)
        self.assertEqual(sum(e.kind == "FREE" and e.addr in addresses
                             for e in self.events(dump)), 0)
        self.assert_no_unknown_free(trace)


def of_bytes(mean):
    return lambda size: -math.expm1(-max(size, 1) / mean)


def one_of(every):
    return lambda size: 1 / every


def judge(recorded, truth, chance):
    """Sizes of which too many or too few blocks are among the sample to be chance, as 'size: how
    many standard errors', and likewise "all".  The standard errors are those of the truth."""
    wrong, total, variance = {}, 0, 0
    for size, nr in truth.items():
        p = chance(size)
        off = recorded.get(size, 0) - nr * p
        total += off
        variance += nr * p * (1 - p)
        if abs(off) > SIGMAS * math.sqrt(nr * p * (1 - p)) + 1:
            wrong[size] = round(off / math.sqrt(nr * p * (1 - p)), 1)
    if abs(total) > SIGMAS * math.sqrt(variance) + 1:
        wrong["all"] = round(total / math.sqrt(variance), 1)
    return wrong


@needs_bpf
class SampleTest(FilterCase):
    def check(self, option, chance, commands, truth):
        """Record, and compare by size with @truth; the estimates of the report with sums of 1 / p."""
        trace = self.first_whole(lambda: self.sampled(option, commands))
        counts = self.truth
        dump = self.dump(trace)
        recorded = self.sizes(self.events(dump))
        self.assertEqual(judge(recorded, truth, chance), {}, recorded)
        left_out = self.skipped(dump)["sample"]
        seen = collections.Counter({size: recorded[size] for size in truth})
        self.assertEqual(left_out.nr + sum(recorded.values()),
                         counts["allocs"] + sum(recorded.values()) - sum(seen.values()))
        text = self.report(trace)
        totals = parse_totals(text)
        estimates = [sum(n * size / chance(size) for size, n in recorded.items()),
                     sum(n / chance(size) for size, n in recorded.items())]
        self.assertAlmostEqual(totals.allocations.bytes / estimates[0], 1, delta=2e-4)
        # Blocks are whole: what is rounded has an error of its own, at most 1/2 each.
        off = SIGMAS * 0.5 * math.sqrt(sum(recorded.values())) + 2e-4 * estimates[1]
        self.assertAlmostEqual(totals.allocations.blocks, estimates[1], delta=off)
        self.assert_no_unknown_free(trace)
        return text, totals, counts

    def sampled(self, option, commands):
        trace, self.truth = self.run_target(["-s", option], *commands)
        return trace

    def test_one_of_10_with_a_period_of_10(self):
        truth = {100 + 8 * i: 100000 for i in range(10)}
        commands = ["0 cycle 1000000 100 8 10", "0 drop 900000"]
        text, totals, counts = self.check("10", one_of(10), commands, truth)
        self.assertIn("sampled: one of 10 allocations; all blocks and bytes are estimates\n", text)
        # What is outstanding: 100,000 blocks.
        error = math.sqrt(counts["live"] * 0.9 / 0.1)
        self.assertLess(abs(totals.outstanding.blocks - counts["live"]), SIGMAS * error)
        said = re.search(r"outstanding: ([\d,]+) blocks, ([\d,]+) bytes$", text, re.M)
        self.assertAlmostEqual(number(said[1]) / error, 1, delta=0.05)

    def test_one_of_many(self):
        """The verifier takes the programs however far the next sample may be."""
        for every in "2048", "1000003":
            trace = self.sampled(every, ["0 keep 23 47"])
            self.assertIn("sampled: one of ", self.report(trace))

    def test_by_bytes(self):
        sizes = {0: 20000, 16: 200000, 100: 100000, 1000: 30000, 4096: 20000, 30000: 10000}
        commands = ["0 keep %d %d" % (nr, size) for size, nr in sizes.items()]
        text, totals, counts = self.check("8K", of_bytes(8192), commands + ["0 drop 40000"], sizes)
        self.assertIn("sampled: one allocation in 8,192 bytes on average", text)
        alive = dict(sizes)
        for size, nr in ((30000, 10000), (4096, 20000), (1000, 10000)):
            alive[size] -= nr
        chance = of_bytes(8192)
        error = math.sqrt(sum(n * s * s * (1 - chance(s)) / chance(s) for s, n in alive.items()))
        self.assertLess(abs(totals.outstanding.bytes - counts["live_bytes"]), SIGMAS * error)
        said = re.search(r"outstanding: ([\d,]+) blocks, ([\d,]+) bytes$", text, re.M)
        self.assertAlmostEqual(number(said[2]) / error, 1, delta=0.1)

    def test_blocks_of_few_bytes(self):
        truth = {0: 50000, 1: 50000, 2: 50000, 17: 50000}
        trace, _ = self.run_target(["-s16B"], *("0 keep %d %d" % (n, s) for s, n in truth.items()))
        recorded = self.sizes(self.events(self.dump(trace)))
        self.assertEqual(judge(recorded, truth, of_bytes(16)), {}, recorded)

    def test_the_first_allocations_of_threads(self):
        """A thread's first sample is no nearer than the others."""
        trace, _ = self.run_target(["-s", "10"], "0 threads 4000")
        self.assertEqual(judge(self.sizes(self.events(self.dump(trace))), {24: 8000}, one_of(10)), {})

    def test_first_that_a_thread_does_is_a_realloc_that_fails(self):
        with open(self.path("refused.c"), "w") as source:
            source.write(REFUSED)
        self.build("refused", "refused.c")
        trace, _ = self.record("./refused", options=["-s", "2"])
        text = self.report(trace)
        self.assertNotIn("implied", text)
        self.assertNotRegex(text, r"\btake\b")
        self.assert_no_unknown_free(trace)
        recorded = self.sizes(self.events(self.dump(trace)))
        self.assertEqual(judge({47: recorded.get(47, 0)}, {47: 500}, one_of(2)), {}, recorded)

    def test_resized_blocks_and_other_threads(self):
        program = self.sample("stress")
        def run():
            trace, out = self.record(program, "200000", options=["-s", "5"])
            truth.update(self.counts(out))
            return trace

        truth = {}
        trace = self.first_whole(run)
        text = self.report(trace)
        totals = parse_totals(text)
        self.assert_no_unknown_free(trace)
        self.assertNotIn("implied", text)
        allocated = truth["mallocs"] + truth["callocs"] + truth["reallocs"]
        for got, true in ((totals.allocations.blocks, allocated),
                          (totals.outstanding.blocks, truth["blocks"])):
            self.assertLess(abs(got - true), SIGMAS * math.sqrt(true * 0.8 / 0.2), text[:600])

    def test_folded_says_that_bytes_are_estimates(self):
        trace, _ = self.run_target(["-s", "2"], "0 keep 1000 47")
        result = self.mleak("report", "--folded", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, "one of 2 allocations: all bytes are estimates")
        self.assertEqual(int(result.out.split()[-1]) % 94, 0)


class JudgeTest(LoadCase):
    """The judge of samples refuses samplers that are biased, or not random."""

    def test_each_tenth_of_a_target_with_that_period(self):
        allocations = [100 + 8 * (i % 10) for i in range(300000)]
        truth = collections.Counter(allocations)
        self.assertEqual(len(judge(collections.Counter(allocations[::10]), truth, one_of(10))), 10)

    def test_two_percent_too_many(self):
        self.assertEqual(list(judge({16: 101000}, {16: 1000000}, one_of(10))), [])
        self.assertEqual(list(judge({16: 102000}, {16: 1000000}, one_of(10))), [16, "all"])
        # Of ten sizes each is within bounds, but not all of them together.
        of_each = {size: 10150 for size in range(10)}
        self.assertEqual(list(judge(of_each, dict.fromkeys(of_each, 100000), one_of(10))), [])
        of_each = {size: 10200 for size in range(10)}
        self.assertEqual(list(judge(of_each, dict.fromkeys(of_each, 100000), one_of(10))), ["all"])

    def test_countdown_of_bytes_without_chance(self):
        left, recorded, truth = 8192, collections.Counter(), collections.Counter()
        for i in range(300000):
            size = (16, 100, 4096)[i % 3]
            truth[size] += 1
            left -= size
            if left < 0:
                recorded[size] += 1
                left += 8192
        self.assertNotEqual(judge(recorded, truth, of_bytes(8192)), {})


@needs_bpf
class DelayTest(FilterCase):
    def test_what_comes_before_is_counted(self):
        target, mleak, trace = self.attach_to_target("-D", "3s")
        begun = time.monotonic()
        self.tell(target, "0 keep 1000 47")
        told_ns = time.monotonic_ns()
        while time.monotonic() - begun < 3.5:
            self.tell(target, "0 keep 1 100")
        self.tell(target, "0 keep 500 53")
        self.tell(target, "0 drop 500")
        self.tell(target, "0 drop %d" % 1000000)
        counts = self.end(target, mleak)
        dump = self.dump(trace)
        events = self.events(dump)
        sizes = self.sizes(events)
        self.assertEqual(sizes[53], 500)
        start = int(re.search(r"monotonic (\d+)", dump)[1])
        if told_ns < start + 3 * 10**9:
            self.assertEqual(sizes[47], 0)
        self.assertEqual(sum(sizes.values()) + self.skipped(dump)["delay"].nr, counts["allocs"])
        self.assertGreaterEqual(min(e.time for e in events), start + 3 * 10**9)
        self.assert_no_unknown_free(trace)
        text = self.report(trace)
        self.assertEqual(parse_totals(text).outstanding, (0, 0))
        self.assertIn("not recorded: events before the delay was over (", text)

    def test_duration_counts_from_its_end(self):
        trace, _ = self.run_target(["-D", "60s", "-d", "20s"], "0 keep 1 47")
        self.assertEqual(self.skipped(self.dump(trace))["delay"], (1, 47))


@needs_bpf
class WrongValueTest(FilterCase):
    def test_one_sentence_and_status_125(self):
        for options in (["-z0"], ["-z", "x"], ["-Z0"], ["-z2K", "-Z1K"], ["-s0"], ["-s", "ten"],
                        ["-s", "2G"], ["-s10X"], ["-D", "soon"], ["-D0"], ["--trigger=0"],
                        ["--tid=0"], ["--tid=main"], ["--tid=1"]):
            with self.subTest(options=options):
                result = self.mleak("record", *options, "--", "true")
                self.assertEqual(result.status, 125)
                self.assert_one_message(result.err)
        target = self.spawn(["sleep", "600"])
        result = self.mleak("record", "-p", str(target.pid), "--tid", "1")
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "has no thread 1")
        self.assertIsNone(target.poll())
