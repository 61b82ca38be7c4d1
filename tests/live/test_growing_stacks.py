"""`mleak report --growth` on grow_target: its two leaks are called growing, and nothing else of it is."""

import csv
import io
import json
import os
import re
import subprocess

from backends import both_backends, by_bpf_alone
from faulttest import FaultCase
from mleaktest import MLEAK_FAST, TESTS, end_process, number, read_line, wait_until

TICKS_US = [1500, 1500, 3000, 6000, 12000, 24000]  # how long a tick is, at each try
TICKS = 2000  # that are recorded at least, in three seconds; a session is 250 long
LEAKS = ["leak_entry", "leak_rarely"]


@both_backends
class GrowingStacksTest(FaultCase):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        subprocess.run(["gcc", "-O1", "-g", "-o", self.path("grow"),
                        os.path.join(TESTS, "live", "grow_target.c")], check=True)

    def ask(self, target):
        """Ticks so far, and blocks and bytes of its leaks."""
        target.stdin.write(b"?")
        return [int(word) for word in read_line(target).split()]

    def run_ticks(self, target):
        """What has leaked while it ticked: small blocks, and large ones.  None: it stood still for long."""
        begun = now = self.ask(target)
        latest = 0
        while now[0] < begun[0] + TICKS:
            now = self.ask(target)
            latest = max(latest, now[4])
        return [now[1] - begun[1], now[2] - begun[2]] if latest < TICKS / 10 else None

    def is_even(self):
        """Was the program stopped for only a small part of the recording, at its beginning or end?"""
        result = self.mleak("report", "--format=json", self.path("x.mlk"))
        return json.loads(result.out)["trace"]["duration_ns"] < 1.2 * TICKS * self.tick_us * 1000

    def record_evenly(self, record, *options):
        """What the shapes are of a program that stands still for long is not for us to say.  The slower it
        ticks, the fewer of its ticks are late where other programs get the processor, too."""
        for self.tick_us in TICKS_US:
            truth = record(*options)
            if truth:
                return truth
        self.fail("whatever its pace, this machine stopped the program for a tenth of the recording")

    def record_attached(self, *options):
        target = self.spawn([self.path("grow"), str(self.tick_us)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        mleak = self.attach(target.pid, *options)
        truth = self.run_ticks(target)
        mleak.terminate()
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        if truth and self.is_even():
            self.assertRegex(result.err.splitlines()[-1],
                             r"^mleak: growing: get < leak_(entry|rarely) < one_tick, \+[\d.]+ MiB/h, and 1 more "
                             r"stack; to see how stacks grew: mleak report --growth %s$" % self.path("x.mlk"))
        return truth if self.is_even() else None

    def record_whole(self, *options):
        mleak = self.start_mleak("record", "-o", self.path("x.mlk"), *options, "--", self.path("grow"),
                                 str(self.tick_us), stdin=subprocess.PIPE)
        self.assertEqual(read_line(mleak), "ready")
        truth = self.run_ticks(mleak)
        mleak.stdin.close()
        mleak.stdin = None
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        return truth if self.is_even() else None

    def rows(self):
        result = self.mleak("report", "--growth", "--format=csv", self.path("x.mlk"))
        self.assertEqual(result.status, 0, result.err)
        return list(csv.DictReader(io.StringIO(result.out, newline="")))

    def name(self, row):
        return row["stack"].split(";")[-2]

    def shapes(self, rows):
        shapes = {}
        for row in rows:
            shapes.setdefault(self.name(row), set()).add(row["shape"])
        return shapes

    def assert_only_leaks_grow(self, truth, sampled=False):
        rows = self.rows()
        shapes = self.shapes(rows)
        self.assertEqual(sorted(self.name(row) for row in rows[:2]), LEAKS, shapes)
        self.assertEqual(sorted(name for name, found in shapes.items() if "growing" in found), LEAKS, shapes)
        self.assertIn("fill_cache", shapes)
        self.assertNotIn("uneven", shapes["fill_cache"], shapes)
        for row in rows[:2]:
            leaked = truth[1] if self.name(row) == "leak_rarely" else truth[0]
            # the recording goes on for some ticks after the program was asked
            delta = 0.5 * leaked if sampled else 0.2 * leaked + 2
            self.assertAlmostEqual(int(row["outstanding_blocks"]), leaked, delta=delta)
            self.assertEqual(int(row["bytes_per_minute_low"]) < int(row["bytes_per_minute"]), sampled)
        return shapes

    @by_bpf_alone
    def test_attached(self):
        shapes = self.assert_only_leaks_grow(self.record_evenly(self.record_attached))
        self.assertEqual(shapes["replace_row"], {"replacing"})
        self.assertTrue(shapes["use_bounded"] <= {"steady", "replacing"}, shapes)
        self.assertTrue(shapes["open_session"] <= {"steady", "replacing"}, shapes)
        text = self.report(self.path("x.mlk"), "--growth")
        self.assertRegex(text, r"(?m)^    as many older blocks were freed as [\d,]+ of its blocks, [\d,]+ bytes$")
        self.assertIn("    hint: new_chunk gives these blocks out in parts;", text)
        self.assertRegex(text, r"(?m)^    [\d,]+ of its blocks were freed at age \d+\.\d m?s \(median\)$")

    def test_rows_for_people(self):
        self.record_evenly(self.record_whole, "-s", "4")
        text = self.mleak("report", "--growth", "--color=never", self.path("x.mlk")).out
        rows = list(csv.DictReader(io.StringIO(
            self.mleak("report", "--growth", "--format=csv", self.path("x.mlk")).out, newline="")))
        self.assertRegex(text, r"(?m)^shape +bytes +blocks +bytes/min +MiB/h +freed +lifetime$")
        leak = next(row for row in rows if self.name(row) == "leak_entry")
        shown = re.search(r"(?m)^growing +([\d,]+) +[\d,]+ +\+([\d,]+) +\+([\d.]+) +0\.0 %.*\n +get .*\n +leak_entry ",
                          text)
        self.assertIsNotNone(shown, text)
        self.assertEqual(shown[1].replace(",", ""), leak["outstanding_bytes"])
        self.assertEqual(shown[2].replace(",", ""), leak["bytes_per_minute"])
        self.assertAlmostEqual(float(shown[3]), int(leak["bytes_per_minute"]) * 60 / 2**20, delta=0.06)
        self.assertRegex(text, r"(?m)^    %s samples: \+[\d,]+ to \+[\d,]+ bytes/min \(95 %%\)$" %
                         leak["samples"])
        # three calls of one line are one row
        self.assertRegex(text, r"(?m)^    [23] stacks with the same lines$")
        groups = {row["group"] for row in json.loads(self.mleak(
            "report", "--growth", "--format=json", self.path("x.mlk")).out)["stacks"]}
        self.assertEqual(len(groups), len(re.findall(r"(?m)^(?:growing|late|uneven|filling|steady|once) +\d", text)))

    def assert_marked(self, text, rows):
        """The functions below one_tick have a mark if their stacks, which are in @rows, have one shape.
        What they call has none: the line above says it."""
        shapes = {}
        for row in rows:
            stack = row["stack"].split(";")
            if "one_tick" in stack:
                shapes.setdefault(stack[stack.index("one_tick") + 1], set()).add(row["shape"])
        self.assertIn("leak_entry", shapes)
        for name, found in shapes.items():
            line = re.search(r"(?m)^.*[ -]%s(?:  .*)?$" % name, text.split("call path")[1])
            if line:
                marked = len(found) == 1 and not found & {"steady", "once"}
                self.assertEqual(line[0].endswith("  [%s]" % min(found)), marked, line[0])
                self.assertEqual(line[0].endswith("]"), marked, line[0])

    def assert_line_below(self, text):
        """The last line but those on symbols says what grows most, and which command shows more."""
        self.assertRegex(text.split("call path")[1],
                         r"(?m)\n\ngrowing: get < leak_(entry|rarely) < one_tick, \+[\d.]+ MiB/h, and 1 more "
                         r"stack; to see how stacks grew: mleak report --growth %s$" % self.path("x.mlk"))

    def test_below_a_tree_is_said_what_grows(self):
        self.record_evenly(self.record_whole)
        text = self.report(self.path("x.mlk"))
        self.assertNotIn("MiB/h", text.split("call path")[0])
        self.assertNotIn("[growing]", text)
        self.assert_line_below(text)
        self.assertIn("\n\ngrowing: get < leak_", self.report(self.path("x.mlk"), "--inverted"))
        self.assertIn("\n\ngrowing: get < leak_", self.report(self.path("x.mlk"), "--flat"))
        self.assertIn("\n\nnothing grew all the time; to see ",
                      self.report(self.path("x.mlk"), "--function", "^configure$"))

    @by_bpf_alone
    def test_above_the_tree_of_a_running_program_is_the_answer(self):
        self.record_evenly(self.record_attached)
        text = self.report(self.path("x.mlk"))
        rows = {self.name(row): float(row["bytes_per_minute"]) * 60 / 2**20 for row in self.rows()
                if row["shape"] == "growing"}
        head = text.split("call path")[0]
        said = re.search(r"\n  growing +\+([\d.]+) MiB/h, by 2 of \d+ stacks\n", head)
        self.assertAlmostEqual(float(said[1]), sum(rows.values()), delta=0.11)
        for name, rate in rows.items():
            found = re.search(r"\n    \+([\d.]+) MiB/h since (\d+\.\d) s: get < %s < one_tick\n" % name, head)
            self.assertAlmostEqual(float(found[1]), rate, delta=0.11)
        rows = self.rows()
        replacing = [row for row in rows if row["shape"] == "replacing"]
        found = re.search(r"\n  replacing +([\d,]+) bytes in (\d+) stacks?: as many older blocks were freed, so "
                          r"this did not grow\n(?:    [\d,]+ bytes: get < new_chunk < use_arena\n)?"
                          r"    [\d,]+ bytes: get < replace_row < one_tick\n", head)
        self.assertIsNotNone(found, head)
        self.assertEqual(found[1].replace(",", ""), str(sum(int(row["outstanding_bytes"]) for row in replacing)))
        self.assertEqual(int(found[2]), len(replacing))
        filling = [row for row in rows if row["shape"] == "filling"]
        found = re.search(r"\n  filling +([\d,]+) bytes in (\d+) stacks?: more than at half of the time, but old "
                          r"blocks are freed\n    ([\d,]+) bytes: get < fill_cache < one_tick\n", head)
        # on a busy machine the cache may be uneven, or full
        self.assertEqual(bool(found), bool(filling), head)
        self.assertEqual(number(found[1]) if found else 0, sum(int(row["outstanding_bytes"]) for row in filling))
        self.assertEqual(int(found[2]) if found else 0, len(filling))
        self.assert_line_below(text)
        self.assert_marked(text, rows)
        one = self.report(self.path("x.mlk"), "-n", "1")
        self.assertEqual(one.split("call path")[0], head)
        self.assert_line_below(one)
        nothing = self.report(self.path("x.mlk"), "--function", "^use_bounded$").split("call path")[0]
        self.assertIn("\n  growing        nothing: no stack had more ", nothing)

    def record_twice(self):
        """Two recordings of one process, the second twice as long; None if it stood still for long."""
        target = self.spawn([self.path("grow"), str(self.tick_us)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        truths = []
        for name, times in ("before", 1), ("after", 2):
            mleak = self.attach(target.pid)
            truths += [self.run_ticks(target) for _ in range(times)]
            mleak.terminate()
            self.assertEqual(self.finish(mleak).status, 0)
            os.rename(self.path("x.mlk"), self.path(name))
        return truths if all(truths) else None

    @by_bpf_alone
    def test_a_difference_of_two_attached_recordings_compares_rates(self):
        self.record_evenly(self.record_twice)
        before, after = self.path("before"), self.path("after")
        text = self.mleak("diff", before, after)
        self.assertEqual((text.status, text.err), (0, ""))
        self.assertIn("\nboth recordings attached to one process: what grew in them is compared by its rate\n",
                      text.out)
        rows = list(csv.DictReader(io.StringIO(self.mleak("diff", "--format=csv", before, after).out,
                                               newline="")))
        self.assertEqual(sorted(self.name(row) for row in rows[:2]), LEAKS)
        for row in rows[:2]:
            rates = [int(row["bytes_per_minute_before"]), int(row["bytes_per_minute_after"])]
            self.assertLess(max(rates), 1.5 * min(rates), row)
            # by what is outstanding it would have grown twice as fast
            self.assertGreater(int(row["bytes_after"]), 1.5 * int(row["bytes_before"]), row)
            self.assertIn(row["change"], ("same", "faster", "slower"))
        more = re.search(r"\nnew or faster ones grew by ([\d,]+) bytes more than at the rate before\n$", text.out)
        more = int(more[1].replace(",", ""))
        leaked = int(rows[0]["bytes_after"]) + int(rows[1]["bytes_after"])
        self.assertLess(more, 0.34 * leaked)
        # what is judged is what is compared; by what is outstanding, half of it would have come
        for limit, status in ((max(more, 1), 0), (more - 1, 1)):
            if limit > 0:
                self.assertEqual(self.mleak("diff", "--fail-on-leak=%d" % limit, before, after).status, status)
        html = self.mleak("diff", "--format=html", "--fail-on-leak=%d" % (0.4 * leaked), before, after)
        self.assertEqual(html.status, 1)
        document = json.loads(self.mleak("diff", "--format=json", before, after).out)
        self.assertIs(document["rates"], True)
        self.assertEqual([str(stack["bytes_per_minute_after"]) for stack in document["stacks"]],
                         [row["bytes_per_minute_after"] for row in rows])

    def spawn_as(self, pid, argv):
        """Start @argv as process @pid, which has ended."""
        for _ in range(500):
            try:
                with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                    last.write(str(pid - 1))
            except OSError as error:
                self.skipTest("processes get no chosen number here: %s" % error)
            target = self.spawn(argv, stdin=subprocess.PIPE)
            if target.pid == pid:
                return target
            end_process(target)
        self.fail("other processes begin all the time")

    @by_bpf_alone
    def test_a_program_that_was_started_again_is_another_process(self):
        argv, pid = [self.path("grow"), "1500"], 0
        for name in "before", "after", "again":
            if name != "again":
                target = self.spawn_as(pid, argv) if pid else self.spawn(argv, stdin=subprocess.PIPE)
                pid = target.pid
                self.assertEqual(read_line(target), "ready")
            mleak = self.attach(pid)
            begun = self.ask(target)[0]
            wait_until(lambda: self.ask(target)[0] > begun + 900, "it does not tick")
            self.stop(mleak)
            os.rename(self.path("x.mlk"), self.path(name))
            if name == "before":
                end_process(target)
        by_rates = lambda *traces: json.loads(self.mleak(
            "diff", "--format=json", *map(self.path, traces)).out)["rates"]
        self.assertIs(by_rates("before", "after"), False)
        self.assertIs(by_rates("after", "again"), True)

    @by_bpf_alone
    def test_attached_and_sampled(self):
        self.assert_only_leaks_grow(self.record_evenly(self.record_attached, "-s", "4"), sampled=True)

    def test_from_the_first_block_on(self):
        shapes = self.assert_only_leaks_grow(self.record_evenly(self.record_whole))
        self.assertEqual(shapes["configure"], {"once"})

    def test_from_the_first_block_on_and_sampled(self):
        self.assert_only_leaks_grow(self.record_evenly(self.record_whole, "-s", "4"), sampled=True)
