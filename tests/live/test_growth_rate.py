"""The rate of a stack that leaks beside a full cache, ages of freed blocks, and what a short recording tells."""

import csv
import io
import json
import os
import re
import subprocess

from growthtest import GrowthCase
from mleaktest import TESTS, needs_bpf, read_line

TICKS_US = [1000, 2000, 4000, 8000, 16000]  # how long a tick is, at each try
TICKS = 4000
SESSION_TICKS = 300


@needs_bpf
class GrowthRateTest(GrowthCase):
    def build(self, name):
        subprocess.run(["gcc", "-O1", "-g", "-o", self.path(name),
                        os.path.join(TESTS, "live", name + "_target.c")], check=True)

    def ask(self, target):
        target.stdin.write(b"?")
        return [int(word) for word in read_line(target).split()]

    def record_evenly(self, name, ticks, *options, ticks_us=TICKS_US, words=()):
        """Record a target for @ticks, in which it never stood still for long; returns the length of a tick in
        seconds, and what it told at the beginning and the end."""
        self.build(name)
        for tick_us in ticks_us:
            target = self.spawn([self.path(name), str(tick_us), *words], stdin=subprocess.PIPE)
            self.assertEqual(read_line(target), "ready")
            mleak = self.attach(target.pid, *options)
            begun = now = self.ask(target)
            latest = 0
            while now[0] < begun[0] + ticks:
                now = self.ask(target)
                latest = max(latest, now[-1])
            err = self.stop(mleak)
            if latest < ticks / 20:
                return tick_us / 1e6, begun, now, err
        self.fail("whatever its pace, this machine stopped the program for a twentieth of the recording")

    def test_older_blocks_count_for_the_time_in_which_they_were_freed(self):
        tick, begun, now, err = self.record_evenly("turn", TICKS)
        truth = (now[1] - begun[1]) / ((now[0] - begun[0]) * tick) * 3600 / 2**20  # MiB/h
        row = next(row for row in self.growth_rows() if "keep_entry" in row["functions"])
        self.assertEqual(row["shape"], "growing")
        # if these were taken off all the time, the rate would be as much too low
        self.assertGreater(int(row["replaced_bytes"]), 0.25 * int(row["outstanding_bytes"]))
        self.assertAlmostEqual(int(row["bytes_per_minute"]) * 60 / 2**20, truth, delta=0.15 * truth)
        told = re.search(r"growing: get < keep_entry < \w+, \+([\d.]+) MiB/h", err)
        self.assertAlmostEqual(float(told[1]), truth, delta=0.15 * truth)
        text = self.mleak("report", self.path("x.mlk")).out
        told = re.search(r"\+([\d.]+) MiB/h since [\d.]+ s: get < keep_entry", text)
        self.assertAlmostEqual(float(told[1]), truth, delta=0.15 * truth)

    def test_the_age_at_which_blocks_are_freed_is_exact(self):
        tick, _, _, _ = self.record_evenly("turn", TICKS)
        row = next(row for row in self.growth_rows() if "open_session" in row["functions"])
        age = SESSION_TICKS * tick
        self.assertAlmostEqual(int(row["median_lifetime_ns"]) / 1e9, age, delta=0.1 * age)
        text = self.report(self.path("x.mlk"), "--growth")
        told = re.search(r" ([\d.]+) (m?s)\n +get .*\n +open_session", text)
        self.assertAlmostEqual(float(told[1]) * (1e-3 if told[2] == "ms" else 1), age, delta=0.1 * age)
        stacks = json.loads(self.mleak("report", "--growth", "--format=json", self.path("x.mlk")).out)["stacks"]
        self.assertIn(int(row["median_lifetime_ns"]), [stack.get("median_lifetime_ns") for stack in stacks])

    def test_a_cache_that_fills_far_longer_is_unclear(self):
        """Of its 6,000 places 100 are full before and 550 after: few entries are replaced by then."""
        self.record_evenly("grow", 150, ticks_us=[10000, 20000, 40000])
        rows = self.growth_rows()
        shapes = {}
        for row in rows:
            shapes.setdefault(row["functions"][1], set()).add(row["shape"])
        self.assertEqual([row["functions"][1] for row in rows[:2]].count("fill_cache"), 0, rows[:3])
        self.assertEqual(shapes["leak_entry"], {"growing"})
        # several calls of one line are several stacks, with one answer
        self.assertEqual(shapes["fill_cache"], {"unclear"})
        self.assertGreater(sum(row["functions"][1] == "fill_cache" for row in rows), 1)
        text = self.mleak("report", "--growth", self.path("x.mlk")).out
        self.assertEqual(text.count("  fill_cache "), 1, text)
        head = self.mleak("report", self.path("x.mlk"), exact=False).out.split("call path")[0]
        self.assertRegex(head, r"\n  replacing +[\d.]+ [KM]iB in \d+ stacks?: as many .*\n    [\d.]+ [KM]iB: get < ")
        self.assertRegex(head, r"\n  unclear +\d stacks? grew: the recording is short for the age at which "
                               r"(its|their) blocks are freed\n    \+[\d.]+ MiB/h: get < fill_cache < one_tick\n")

    def test_a_sample_says_what_it_knows_of_older_blocks(self):
        """Each tick frees a session, and three of four an entry: of those from before there were 900."""
        self.record_evenly("turn", TICKS, "-s", "4")
        totals = json.loads(self.mleak("report", "--format=json", self.path("x.mlk")).out)["totals"]
        self.assertIsNone(totals["older"])
        self.assertIsNone(totals["net"])
        text = self.mleak("report", self.path("x.mlk")).out
        older = int(re.search(r"\n  older blocks +([\d,]+)  freed, by estimate", text)[1].replace(",", ""))
        self.assertAlmostEqual(older, 900, delta=300)
        self.assertRegex(text, r"\n  net +[+-][\d,]+ blocks, by estimate; of bytes it is not known\n")
        page = self.mleak("report", "--format=html", self.path("x.mlk")).out
        self.assertIn('"older blocks freed, by estimate":{"blocks":%d}' % older, page)
        self.assertIn('"net, by estimate":{"blocks":', page)

    def test_times_that_choose_no_growth(self):
        """What was given out in a part of the time had nothing before it."""
        tick, _, _, _ = self.record_evenly("turn", TICKS)
        half = TICKS / 2 * tick
        part = ["--between", "%.3f,%.3f" % (half, 1.6 * half)]
        text = self.mleak("report", *part, self.path("x.mlk")).out
        told = "not told of blocks that were given out from some moment on, which all grow from nothing\n"
        if 0.6 * half >= 1:
            self.assertIn("\n  growing        " + told, text)
        self.assertNotIn("MiB/h", text)
        table = self.mleak("report", "--growth", "--format=csv", *part, self.path("x.mlk")).out
        shapes = {row["shape"] for row in csv.DictReader(io.StringIO(table, newline=""))}
        self.assertFalse(shapes & {"growing", "late", "uneven"}, table)

    def shapes_of_full(self, leaks, *options):
        """A program that stood still for a quarter of its time is not of the kind that is meant."""
        for _ in range(3):
            self.record_evenly("full", TICKS, *options, words=[str(leaks)])
            shapes = {}
            for row in self.growth_rows():
                for name in {"replace_entry", "leak_entry"} & set(row["functions"]):
                    shapes.setdefault(name, set()).add(row["shape"])
            if {"uneven"} not in shapes.values():
                break
        return shapes, self.mleak("report", self.path("x.mlk")).out

    def test_a_full_cache_grows_in_no_choice_of_blocks(self):
        """None of its blocks is freed that was allocated in the recording; frees of older ones are left out."""
        self.assertEqual(self.shapes_of_full(0)[0], {"replace_entry": {"replacing"}})
        for options in (("-s", "4"), ("-z", "100"), ("-s", "2K", "-z", "100")):
            with self.subTest(options=options):
                shapes, text = self.shapes_of_full(0, *options)
                self.assertEqual(shapes, {"replace_entry": {"unclear"}}, text)
                told = re.search(r"(?m)^  unclear +(\d) stacks? grew: ([\d,]+) older blocks were freed, of unknown size, "
                                 r"which (?:it|they) may replace; to tell, record all allocations$", text)
                self.assertIsNotNone(told, text)
                self.assertGreater(int(told[2].replace(",", "")), 0.8 * 3 * TICKS)
                self.assertNotRegex(text, "(?m)^growing|  growing +[+]")

    def test_a_leak_beside_a_full_cache_grows_if_it_is_more_than_was_replaced(self):
        for options in (("-s", "4"), ("-z", "100")):
            with self.subTest(options=options):
                shapes, text = self.shapes_of_full(8, *options)
                self.assertEqual(shapes, {"replace_entry": {"unclear"}, "leak_entry": {"growing"}}, text)
