"""`mleak unwind --drop-raw`: the same reports, of a trace without registers and stacks."""

import csv
import io
import json
import os
import re

from unwindtest import EVENTS, GOLDEN, MODULE, UNWOUND, UnwindCase, chunks_of

STACKS = 9
TAG_DROPPED = "  dropped 2\n"
UNIT_NS = 1000000  # the coarsest
EXACT = [["--folded"], ["--inline"], ["--flat"], ["--inverted"], ["--format=pprof"], ["--format=speedscope"],
         ["--fail-on-leak", "--format=junit"], ["--fail-on-leak", "--format=github"], ["--addresses", "--folded"], ["--format=json", "--by", "thread"],
         ["--by", "thread"], ["--folded", "--cost", "temporary"], ["--jobs", "1"]]


RATES = ["bytes_per_minute", "bytes_per_minute_low", "bytes_per_minute_high"]


class DropRawTest(UnwindCase):
    def of_processes(self):
        """The golden traces but those of the kernel's memory."""
        return [t for t in GOLDEN if not re.search(r"(?m)^of +the kernel", self.mleak("info", t).out)]

    def drop(self, trace):
        result = self.mleak("unwind", "--drop-raw", "-o", self.unwound, trace)
        self.assertEqual(result.status, 0, result.err)

    def stacks_of(self, trace):
        """By id or frames of each stack what JSON says of it, and its times."""
        result = self.mleak("report", "--format=json", trace)
        self.assertEqual(result.status, 0, result.err)
        report = json.loads(result.out)
        sums, times = [], []
        for stack in report["stacks"]:
            times.append([stack.pop("first_ns"), stack.pop("last_ns")])
            stack.pop("ages")
            sums.append(stack)
        return sums, times, report["frames"]

    def growth_of(self, trace):
        """The rows of a table of growth, the rates that were taken out of each, and what was said."""
        status, out, err = self.shown(trace, ["--growth", "--format=csv"])
        self.assertEqual(status, 0, err)
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        return rows, [row.pop(name) for row in rows for name in RATES], err

    def assert_same_growth(self, trace):
        """The rates are about the same: the times that they are of were rounded."""
        rows, rates, said = self.growth_of(trace)
        other_rows, other_rates, other_said = self.growth_of(self.unwound)
        self.assertTrue(rows)
        self.assertEqual((other_rows, other_said), (rows, said))
        for rate, other in zip(rates, other_rates):
            if rate != other:
                self.assertAlmostEqual(float(other), float(rate), delta=abs(float(rate)) / 1000)

    def test_all_views_are_the_same(self):
        self.assertGreaterEqual(len(self.of_processes()), 3)
        for trace in self.of_processes():
            with self.subTest(trace=os.path.basename(trace)):
                self.drop(trace)
                self.assert_same_reports(trace, self.unwound, EXACT)
                self.assert_same_growth(trace)
                self.assertRegex(self.mleak("info", self.unwound).out, r"(?m)^stacks +dropped$")

    def test_a_difference_has_the_same_stacks(self):
        for trace in self.of_processes():
            self.drop(trace)
            result = self.mleak("diff", trace, self.unwound)
            self.assertRegex(result.out, r"(?m)^0 stacks differ, 0 of them are not shown; [1-9]", result.err)

    def top(self, trace, *options):
        """What top prints of the file @trace, and of a pipe from which it comes."""
        with self.spawn(["cat", trace]) as cat:
            results = [self.mleak("top", *options, trace), self.mleak("top", *options, "-", stdin=cat.stdout)]
        for result in results:
            self.assertEqual(result.status, 0, result.err)
        return [result.out for result in results]

    def test_top_has_the_stacks(self):
        """Each with its sums and all of its frames, and each call with its stack."""
        for trace in self.of_processes():
            with self.subTest(trace=os.path.basename(trace)):
                self.drop(trace)
                frames = re.compile(r"(?m)^\t+.*$")
                whole = self.top(trace, "-C")[0]
                self.assertRegex(whole, r"(?m)^\t\tmain$")
                for text in self.top(self.unwound, "-C"):
                    self.assertEqual(frames.findall(text), frames.findall(whole))
                # without times and addresses
                calls = [re.sub(r"(?m)^\S+ | 0x[0-9a-f]+", "", self.mleak("top", "-t", t).out)
                         for t in (trace, self.unwound)]
                self.assertGreater(calls[0].count(" < "), 0)
                self.assertEqual(calls[1], calls[0])
                sizes = [re.findall(r"addr = \S+ size = (.*)", self.mleak("top", "-a", t).out)
                         for t in (trace, self.unwound)]
                self.assertGreater(len(sizes[0]), 0)
                self.assertEqual(sorted(sizes[1]), sorted(sizes[0]))

    def test_times_are_nearly_the_same(self):
        for trace in self.of_processes():
            with self.subTest(trace=os.path.basename(trace)):
                self.drop(trace)
                sums, times, frames = self.stacks_of(trace)
                dropped_sums, dropped_times, dropped_frames = self.stacks_of(self.unwound)
                self.assertEqual(dropped_sums, sums)
                self.assertEqual(dropped_frames, frames)
                self.assertGreater(len(times), 0)
                for pair, dropped in zip(times, dropped_times):
                    for ns, dropped_ns in zip(pair, dropped):
                        self.assertLessEqual(abs(ns - dropped_ns), UNIT_NS)

    def test_blocks_have_numbers_unless_they_were_guarded(self):
        for trace in self.of_processes():
            self.drop(trace)
            info = self.mleak("info", self.unwound).out
            script = self.mleak("script", self.unwound).out
            guarded = re.search(r"(?m)^guard +yes$", info)
            pattern = r" (?:malloc|new|calloc) \d+ 0x([0-9a-f]+)"
            of_malloc = re.findall(pattern, script)
            self.assertEqual(len(of_malloc), len(re.findall(pattern, self.mleak("script", trace).out)), trace)
            numbers = [a for a in of_malloc if len(a) == 16 and a[0] == "8"]
            self.assertEqual(len(numbers), 0 if guarded else len(of_malloc), trace)
            self.assertEqual(bool(re.search(r"(?m)^addresses +dropped$", info)), not guarded)
            if guarded or not of_malloc:
                continue
            result = self.mleak("report", "--addr=0x" + of_malloc[0], self.unwound)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--addr")

    def test_registers_stacks_and_tables_are_gone(self):
        """As the reader says that was made of the specification."""
        self.drop(self.trace)
        text = self.dump_whole(self.unwound, full=True)
        self.assertIn("    head ALLOC ", text)
        self.assertNotRegex(text, r"(?m)^  ALLOC ")
        self.assertNotIn(" regs ", text)
        self.assertIn(TAG_DROPPED, text)
        with open(self.unwound, "rb") as file:
            data = file.read()
        chunks = chunks_of(data)
        types = [chunk.type for chunk in chunks]
        self.assertIn(EVENTS, types)
        self.assertFalse({STACKS, UNWOUND} & set(types))
        with open(self.trace, "rb") as file:
            before = chunks_of(file.read())
        self.assertLess(sum(len(c.payload) for c in chunks if c.type == MODULE),
                        sum(len(c.payload) for c in before if c.type == MODULE) / 4)

    def test_what_is_cut_or_changed_is_harmless(self):
        self.drop(self.trace)
        data = self.read(self.unwound)
        cut = self.path("cut.mlk")
        for length in range(100, len(data), len(data) // 23):
            with open(cut, "wb") as file:
                file.write(data[:length] + bytes(47))
            result = self.mleak("report", cut)
            self.assertIn(result.status, (0, 2), result.err)

    def test_it_cannot_be_unwound_again(self):
        self.drop(self.trace)
        with open(self.unwound, "rb") as file:
            content = file.read()
        for args in [], ["--drop-raw"], ["-o", "other.mlk"]:
            result = self.mleak("unwind", *args, self.unwound)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="cannot be unwound again")
        with open(self.unwound, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertFalse(os.path.exists(self.path("other.mlk")))

    def test_a_trace_of_the_kernel_is_refused(self):
        kernel = [t for t in GOLDEN if t not in self.of_processes()]
        self.assertGreater(len(kernel), 0)
        for trace in kernel:
            result = self.mleak("unwind", "--drop-raw", "-o", self.unwound, trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="of the kernel's memory")
            self.assertFalse(os.path.exists(self.unwound))
