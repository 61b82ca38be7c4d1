"""`mleak report --growth` and `--timeline`, on a program with a leak, a cache and what it makes once."""

import csv
import io
import json
import re
import subprocess

from backends import both_backends
from mleaktest import MLEAK_FAST, Case

# Twelve rounds of 100 ms.  The leak grows in each, the cache is at most 8 blocks, each of which lives
# for 4 rounds, and the last function begins in the last round.  Told is the longest of them.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define F __attribute__((noipa))
F void *get(size_t size) { void *p = malloc(size); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
F void made_once(void) { for (volatile int i = 0; i < 3; i++) get(10007); }
F void leak_on(void) { for (volatile int i = 0; i < 5; i++) get(101); }
F void late_one(void) { get(2003); }
static void *cached[8];
F void cache_it(int round)
{
	for (volatile int i = 0; i < 2; i++) {
		int at = (2 * round + i) % 8;
		free(cached[at]);
		cached[at] = get(509);
	}
}
static long now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
int main(void)
{
	char line[40];
	long longest = 0, begun = now_us(), now;
	made_once();
	for (int round = 0; round < 12; round++) {
		leak_on();
		cache_it(round);
		if (round == 11)
			late_one();
		usleep(100000);
		now = now_us();
		longest = now - begun > longest ? now - begun : longest;
		begun = now;
	}
	return write(1, line, snprintf(line, sizeof(line), "%ld\n", longest)) < 0;
}
"""
ROUND_US = 100000
LEAK, CACHE, ONCE, LATE = 12 * 5 * 101, 8 * 509, 3 * 10007, 2003


@both_backends
class GrowthTest(Case):
    def setUp(self):
        super().setUp()
        source = self.write("grow.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-g", "-o", self.path("grow"), source], check=True)
        self.record_even_rounds()

    def record_even_rounds(self):
        """What the shapes are of a program that stands still for long is not for us to say."""
        for _ in range(5):
            self.trace, out = self.record(self.path("grow"))
            info = json.loads(self.report(self.trace, "--format=json"))
            if int(out) < 1.3 * ROUND_US and info["trace"]["duration_ns"] < 24 * 1000 * ROUND_US:
                return
        self.skipTest("this machine lets no program run evenly for a second")

    def rows(self, *args):
        text = self.report(self.trace, "--format=csv", *args)
        return list(csv.DictReader(io.StringIO(text, newline="")))

    def of(self, rows, name):
        found = [row for row in rows if name in row["stack"].split(";")]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_shapes_and_figures(self):
        rows = self.rows("--growth")
        self.assertEqual([row["shape"] for row in rows], ["growing", "late", "steady", "once"])
        leak, cache = self.of(rows, "leak_on"), self.of(rows, "cache_it")
        self.assertEqual((leak["shape"], leak["outstanding_bytes"]), ("growing", str(LEAK)))
        self.assertEqual((self.of(rows, "late_one")["shape"], self.of(rows, "made_once")["shape"]),
                         ("late", "once"))
        self.assertEqual((cache["shape"], cache["outstanding_bytes"]), ("steady", str(CACHE)))
        # 16 of 24 blocks
        self.assertEqual(cache["share_freed"], "0.6667")
        self.assertEqual((leak["share_freed"], leak["median_lifetime_ns"]), ("0.0000", ""))

    def test_json_has_the_figures_of_the_program(self):
        document = json.loads(self.report(self.trace, "--growth", "--format=json"))
        self.assertEqual([stack["shape"] for stack in document["stacks"]],
                         ["growing", "late", "steady", "once"])
        leak, late, cache, once = document["stacks"]
        self.assertEqual([stack["bytes_then"][-1] for stack in document["stacks"]],
                         [LEAK, LATE, CACHE, ONCE])
        # an interval may end between two blocks of a round
        self.assertEqual({value % 101 for value in leak["bytes_then"]}, {0})
        self.assertEqual(leak["bytes_then"], sorted(leak["bytes_then"]))
        self.assertEqual(late["bytes_then"][0], 0)
        self.assertEqual((cache["allocated"]["blocks"], cache["freed"]["blocks"],
                          cache["share_freed"]), (24, 16, 0.6667))
        self.assertEqual((once["outstanding"]["blocks"], once["share_freed"]), (3, 0))
        self.assertNotIn("median_lifetime_ns", once)
        self.assertIn("median_lifetime_ns", cache)
        timeline = json.loads(self.report(self.trace, "--timeline", "--format=json", "--function",
                                          "^(leak_on|cache_it|made_once|late_one)$"))
        self.assertEqual(timeline["intervals"][-1]["outstanding_bytes"],
                         LEAK + CACHE + ONCE + LATE)
        self.assertEqual([interval["outstanding_bytes"] for interval in timeline["intervals"]],
                         [sum(values) for values in zip(
                             *(stack["bytes_then"] for stack in document["stacks"]))])

    def test_growth_and_lifetime_are_those_of_the_program(self):
        rows = self.rows("--growth")
        leak, cache = self.of(rows, "leak_on"), self.of(rows, "cache_it")
        # 505 bytes a round, whose length the machine decides
        round_ns = self.round_ns()
        self.assertAlmostEqual(float(leak["bytes_per_minute"]), 505 * 60e9 / round_ns,
                               delta=0.35 * 505 * 60e9 / round_ns)
        lifetime = int(cache["median_lifetime_ns"])
        self.assertAlmostEqual(lifetime, 4 * round_ns, delta=0.15 * 4 * round_ns)

    def round_ns(self):
        report = json.loads(self.report(self.trace, "--format=json", "--function", "^leak_on$"))
        stack = report["stacks"][0]
        return (stack["last_ns"] - stack["first_ns"]) / 11

    def test_the_text_says_what_its_words_mean_and_that_they_prove_nothing(self):
        text = self.report(self.trace, "--growth")
        for word in "growing", "late", "steady", "once":
            self.assertRegex(text, r"(?m)^%s +[\d,]+ " % word)
            self.assertRegex(text, r"(?m)^%s: " % word)
        self.assertIn("evidence, not proof", text)

    def test_timeline(self):
        rows = self.rows("--timeline")
        values = [int(row["outstanding_bytes"]) for row in rows]
        self.assertEqual(values[-1], LEAK + CACHE + ONCE + LATE)
        self.assertEqual(values, sorted(values))
        self.assertTrue(16 < len(values) <= 32)
        leak = [int(row["outstanding_bytes"])
                for row in self.rows("--timeline", "--function", "^leak_on$")]
        self.assertEqual(leak[-1], LEAK)
        self.assertEqual({value % 101 for value in leak}, {0})  # it may end within a round
        self.assertGreater(len(set(leak)), 8)

    def test_what_was_freed_is_in_the_timeline_when_it_was_there(self):
        """At the end nothing of it is; the first block of the cache is freed in the fifth round."""
        rows = self.rows("--timeline", "--function", "^cache_it$")
        self.assertIn(2 * 509, [int(row["outstanding_bytes"]) for row in rows])

    def test_timeline_as_text(self):
        text = self.report(self.trace, "--timeline")
        bars = [len(line.split()[-1]) for line in text.splitlines() if line.endswith("#")]
        self.assertEqual(max(bars), 50)
        self.assertEqual(bars, sorted(bars))


# 2 ** 14 stacks, for each of which what grows takes more than a KiB.
MANY_STACKS = r"""
#include <stdlib.h>
__attribute__((noipa)) void descend(int more)
{
	if (!more) {
		void *p = malloc(17);
		__asm__ volatile("" :: "r"(p) : "memory");
		return;
	}
	descend(more - 1);
	__asm__ volatile("");
	descend(more - 1);
	__asm__ volatile("");
}
int main(void) { descend(14); return 0; }
"""


@both_backends
class GrowthMemoryTest(Case):
    program = MLEAK_FAST  # address sanitizer takes more than is allowed here

    def test_a_report_goes_without_what_grew_rather_than_fail(self):
        source = self.write("many.c", MANY_STACKS.encode())
        subprocess.run(["gcc", "-O1", "-o", self.path("many"), source], check=True)
        trace, _ = self.record(self.path("many"))
        whole = self.report(trace, "-j1", "-n", "5")
        self.assertIn("; to see how stacks grew: ", whole)
        seen = set()
        for mebibytes in range(8, 128, 4):
            result = self.mleak("report", "-j1", "-n", "5", "--max-memory=%dM" % mebibytes, trace)
            if result.status == 0 and result.err:
                # little memory may be too little for the lines of libc's debug file
                err = re.sub(r"(?m)^mleak: warning: some names or lines of '.*/libc\.so\.6' are missing: .*\n", "",
                             result.err)
                self.assert_one_message(err, naming="what grew is not said: that takes more memory than")
                short = lambda text: re.sub(r"(?m)  \S+:\d+$", "", text.rstrip("\n"))
                self.assertTrue(short(whole).startswith(short(result.out)), result.out)
                self.assertNotIn("to see how stacks grew", result.out)
                seen.add("without it")
            elif result.status == 0:
                self.assertEqual(result.out, whole)
                seen.add("whole")
            else:
                self.assertEqual(seen, set(), result.err)  # with less it was possible
                self.assert_one_message(result.err, naming="more memory than")
        self.assertEqual(seen, {"without it", "whole"})
