"""`record --switch-output`: a recording in several traces, of which each reports by itself."""

import json
import os
import re
import signal
import subprocess

from backends import both_backends, by_bpf_alone
from mleaktest import (Case, ends_in, parse_answers, parse_folded, parse_totals, read_line, wait_until)

# Allocates and frees as it is told, and says when that is done.
TOLD = r"""
#include <stdlib.h>
#include <unistd.h>
#define F __attribute__((noipa))
static void *kept[100];
F void get(int i, size_t size) { kept[i] = malloc(size); __asm__ volatile("" :: "r"(kept[i]) : "memory"); }
F void early(void) { for (int i = 0; i < 23; i++) get(i, 1001); }
F void late(void) { for (int i = 23; i < 40; i++) get(i, 53); }
int main(void)
{
	char c;

	early();
	while (write(1, "done\n", 5) == 5 && read(0, &c, 1) == 1) {
		late();
		for (int i = 0; i < 11; i++) {
			free(kept[i]);
			kept[i] = NULL;
		}
	}
	return 0;
}
"""

# Allocates 1,009 blocks for each byte that it is told, from stacks of which each has other words, and says when
# that is done.
MANY = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
static unsigned int number;
__attribute__((noipa)) static void leak_here(void) { block = malloc(61); }
__attribute__((noipa)) static void go_down(int depth)
{
	volatile unsigned int words[100];

	for (int i = 0; i < 100; i++)
		words[i] = number = number * 1664525 + 1013904223;
	if (depth)
		go_down(depth - 1);
	else
		leak_here();
	words[0] = number;
}
int main(void)
{
	char c;

	while (read(0, &c, 1) == 1) {
		for (int i = 0; i < 1009; i++)
			go_down(20);
		if (write(1, "done\n", 5) != 5)
			return 1;
	}
	return 0;
}
"""


@both_backends
class SwitchTest(Case):
    def switch(self, recorder, path):
        """Have the recorder end the trace @path."""
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, "wrote '%s'" % re.escape(path))

    def test_the_leaks_of_all_traces_are_the_programs(self):
        recorder = self.start_mleak("record", "--switch-output=signal", "-o", "x.mlk", "--",
                                    self.sample("forever"), "1")
        self.wait_for_leaks(recorder)
        for number in 1, 2, 3, 4:
            # on a busy machine the program may stand still for as long as a trace is written
            self.wait_for_a_leak("x.mlk.%d" % number)
            if number < 4:
                self.switch(recorder, "x.mlk.%d" % number)
        recorder.send_signal(signal.SIGTERM)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        answers = parse_answers(result.out)
        found = [0] * len(answers)
        for number in 1, 2, 3, 4:
            path = self.path("x.mlk.%d" % number)
            self.assert_whole(parse_totals(self.report(path)))
            for stack in parse_folded(self.report(path, "--folded")):
                for i, answer in enumerate(answers):
                    found[i] += stack.bytes if ends_in(stack.frames, answer.path) else 0
            begun = "the program's start" if number == 1 else "an attach to it"
            self.assertRegex(self.mleak("info", path).out, "(?m)^from +.*%s" % begun)
        self.assertEqual(found, [answer.bytes for answer in answers])
        self.assert_sums(result.err, ["x.mlk.%d" % number for number in (1, 2, 3, 4)])
        self.assertFalse(os.path.exists(self.path("x.mlk")))

    def assert_sums(self, err, traces):
        """All that the recorder counted, by the last line of @err, is in one of @traces.  A block that
        was freed in another trace than it was allocated in is an older one there."""
        said = re.search(r": (\d+) allocations?, (\d+) frees?, 0 lost", err)
        totals = [json.loads(self.report(self.path(name), "--format=json"))["totals"] for name in traces]
        self.assertEqual((sum(t["allocated"]["blocks"] for t in totals),
                          sum(t["freed"]["blocks"] + t["unknown_frees"] for t in totals)), (int(said[1]), int(said[2])))

    def wait_for_a_leak(self, name):
        """Until the trace @name, which is being written, has a block that was not freed."""
        wait_until(lambda: os.path.exists(self.path(name)) and
                   "leak_here" in self.mleak("report", "--folded", name).out, "no leak is in '%s'" % name)

    def wait_for_leaks(self, recorder):
        """Until the sample forever, the command of @recorder, prints that it is ready."""
        self.assertEqual(read_line(recorder), "ready")

    def told(self, *options, name="x.mlk"):
        """The program above under record; it has done the first part."""
        self.write("told.c", TOLD.encode())
        self.assertEqual(self.finish(self.spawn(["gcc", "-O1", "-o", "told", "told.c"])).status, 0)
        recorder = self.start_mleak("record", *options, "-o", name, "--", "./told", stdin=subprocess.PIPE)
        self.assertEqual(read_line(recorder), "done")
        return recorder

    def go_on(self, recorder):
        recorder.stdin.write(b"x")
        self.assertEqual(read_line(recorder), "done")

    def by_function(self, path):
        sums = {"early": 0, "late": 0}
        for stack in parse_folded(self.report(path, "--folded")):
            for name in sums:
                sums[name] += stack.bytes if name in stack.frames else 0
        return sums

    def test_what_lives_across_the_switch(self):
        """It is outstanding in the first trace; in the second its free is that of an older block."""
        recorder = self.told("--switch-output=signal")
        self.switch(recorder, "x.mlk.1")
        self.go_on(recorder)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0)
        self.assertEqual(self.by_function(self.path("x.mlk.1")), {"early": 23 * 1001, "late": 0})
        self.assertEqual(self.by_function(self.path("x.mlk.2")), {"early": 0, "late": 17 * 53})
        self.assert_sums(result.err, ["x.mlk.1", "x.mlk.2"])
        older = [json.loads(self.report(self.path("x.mlk.%d" % n), "--format=json"))["totals"] for n in (1, 2)]
        self.assertEqual([t["unknown_frees"] for t in older], [0, 11])

    def test_what_was_done_before_is_in_the_trace_that_ends(self):
        """Also where the recorder has not taken it in yet."""
        self.write("many.c", MANY.encode())
        self.assertEqual(self.finish(self.spawn(["gcc", "-O1", "-g", "-o", "many", "many.c"])).status, 0)
        recorder = self.start_mleak("record", "--switch-output=signal", "--raw-stack", "-o", "x.mlk", "--",
                                    "./many", stdin=subprocess.PIPE)
        for number in range(1, 5):
            self.go_on(recorder)
            asked = self.mleak("ctl", str(recorder.pid), "--switch", **getattr(self, "recorded_as", {}))
            self.assertEqual((asked.status, asked.err), (0, ""))
            self.wait_for_words(recorder, r"wrote 'x\.mlk\.%d'" % number)
        self.assertEqual(self.finish(recorder).status, 0)
        found = [sum(stack.bytes for stack in parse_folded(self.report(self.path("x.mlk.%d" % number), "--folded"))
                     if "leak_here" in stack.frames) for number in range(1, 5)]
        self.assertEqual(found, [1009 * 61] * 4)

    def test_only_the_newest_are_kept(self):
        recorder = self.told("--switch-output=signal", "--keep=2", name="%n.mlk")
        for number in range(1, 5):
            self.switch(recorder, "%d.mlk" % number)
        wait_until(lambda: sorted(n for n in os.listdir(self.dir) if n.endswith(".mlk")) == ["4.mlk", "5.mlk"],
                   "others are there than the newest two")
        # another's file of that name is not removed
        os.unlink(self.path("4.mlk"))
        self.write("4.mlk", b"mine")
        for number in range(5, 7):
            self.switch(recorder, "%d.mlk" % number)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0)
        # what is removed soon is no advice
        self.assertEqual(re.findall("now run: mleak report (.*)", result.err), ["7.mlk"])
        with open(self.path("4.mlk"), "rb") as file:
            self.assertEqual(file.read(), b"mine")
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if n.endswith(".mlk")),
                         ["4.mlk", "6.mlk", "7.mlk"])
        for name in "6.mlk", "7.mlk":
            self.report(self.path(name))

    def test_by_time(self):
        recorder = self.told("--switch-output=1s")
        for number in 1, 2:
            self.wait_for_words(recorder, r"wrote 'x\.mlk\.%d'" % number)
        recorder.stdin.close()
        self.assertEqual(recorder.wait(), 0)
        seconds = float(re.search(r"(?m)^seconds +([\d.]+)$", self.mleak("info", "x.mlk.2").out)[1])
        self.assertGreaterEqual(seconds, 0.9)
        self.assertRegex(self.mleak("info", "x.mlk.1").out, "(?m)^ended +the time was over")

    def test_by_size(self):
        recorder = self.start_mleak("record", "--switch-output=1M", "-o", "x.mlk", "--", self.sample("forever"), "0")
        self.wait_for_words(recorder, r"wrote 'x\.mlk\.2'")
        recorder.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(recorder).status, 0)
        for number in 1, 2:
            size = os.path.getsize(self.path("x.mlk.%d" % number))
            self.assertGreaterEqual(size, 1 << 20)
            self.assertEqual(self.mleak("report", "x.mlk.%d" % number).status, 0)

    def test_where_no_other_file_can_be_made_it_goes_on(self):
        os.mkdir(self.path("x.mlk.2"))
        recorder = self.told("--switch-output=signal")
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, "no other trace is begun: all goes to 'x.mlk.1'")
        self.go_on(recorder)
        self.assertEqual(self.finish(recorder).status, 0)
        self.assertEqual(self.by_function(self.path("x.mlk.1")), {"early": 12 * 1001, "late": 17 * 53})

    def test_after_a_failure_the_next_number_is_tried(self):
        os.mkdir(self.path("x.mlk.2"))
        recorder = self.told("--switch-output=signal")
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, "no other trace is begun: all goes to 'x.mlk.1'")
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, r"wrote 'x\.mlk\.1'")
        self.go_on(recorder)
        self.assertEqual(self.finish(recorder).status, 0)
        self.assertEqual(self.by_function(self.path("x.mlk.1")), {"early": 23 * 1001, "late": 0})
        self.assertEqual(self.by_function(self.path("x.mlk.3")), {"early": 0, "late": 17 * 53})

    def test_the_signal_without_the_option_ends_nothing(self):
        recorder = self.told()
        recorder.send_signal(signal.SIGUSR2)
        wait_until(lambda: "\nmark " in self.mleak("info", self.path("x.mlk")).out, "there is no mark")
        self.go_on(recorder)
        self.assertEqual(self.finish(recorder).status, 0)
        self.assertEqual(self.by_function(self.path("x.mlk")), {"early": 12 * 1001, "late": 17 * 53})

    def test_children_are_in_each_trace(self):
        self.sample("forever")
        recorder = self.start_mleak("record", "--follow", "--switch-output=signal", "-o", "x.mlk", "--",
                                    "sh", "-c", "./forever 1; true")
        self.wait_for_leaks(recorder)
        self.switch(recorder, "x.mlk.1")
        wait_until(lambda: os.path.exists(self.path("x.mlk.2")) and
                   "leak_here" in self.mleak("report", "--folded", "x.mlk.2").out, "the child leaks no more")
        self.switch(recorder, "x.mlk.2")
        totals = parse_totals(self.report(self.path("x.mlk.2")))
        self.assertGreater(totals.allocations.blocks, 0)
        self.assertEqual(totals.complete, totals.of)
        self.assertIn("leak_here", self.report(self.path("x.mlk.2"), "--folded"))

    def test_refusals(self):
        for args, word in ((["--switch-output=10"], "--switch-output wants"), (["--switch-output=10k"], "wants"),
                           (["--switch-output=1ms"], "wants"),
                           (["--switch-output=0s"], "wants a size from 1M as 100M, a time from 1s as 10m, or signal,"), (["--switch-output="], "wants"),
                           (["--switch-output=1m", "--max-size=1G"], "--max-size"),
                           (["--switch-output=1m", "-o", "-"], "-o -"), (["--keep=2"], "--keep"),
                           (["--switch-output=1m", "--keep=0"], "--keep"), (["-o", "%n"], "%n")):
            with self.subTest(args=args):
                result = self.mleak("record", *args, "--", "true")
                self.assertEqual(result.status, 125)
                self.assert_one_message(result.err, naming=word)

    @by_bpf_alone
    def test_an_attach(self):
        target = self.spawn([self.sample("forever"), "1"])
        self.assertEqual(read_line(target), "ready")
        result = self.mleak("record", "-p", str(target.pid), "--switch-output=1s", "-d", "3", "-o", "x.mlk")
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("warning", result.err)
        traces = sorted(n for n in os.listdir(self.dir) if n.startswith("x.mlk."))
        self.assertGreaterEqual(len(traces), 2)
        totals = [parse_totals(self.report(self.path(name))) for name in traces]
        said = re.search(r": (\d+) allocations?, (\d+) frees?, 0 lost", result.err)
        self.assertEqual(sum(t.allocations.blocks for t in totals), int(said[1]))
        self.assertRegex(result.err.splitlines()[-1], r"^mleak: (growing: .*|nothing grew all the time); to see how stacks "
                                                      r"grew: mleak report --growth x\.mlk\.%d$" % len(traces))
