"""Who allocated a stack's blocks, when, and on which line, on a program whose every block is known."""

import json
import re
import subprocess

import pagetest
from backends import either_backend
from mleaktest import Case

# All threads come by the same stack.
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static const int blocks[3] = {5, 11, 7};
static void *to_free;
__attribute__((noipa)) void *get(void)
{
	return malloc(101); /* the line */
}
static void *work(void *arg)
{
	int number = *(int *)arg, left = blocks[number];
	char name[16];

	snprintf(name, sizeof(name), "taker-%d", number);
	prctl(PR_SET_NAME, name);
	printf("%s %d\n", name, (int)gettid());
	while (left--)
		to_free = get();
	if (number == 2)
		free(to_free);
	return arg;
}
int main(void)
{
	static int numbers[3] = {0, 1, 2};
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, &numbers[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@either_backend
class TakersTest(Case):
    def setUp(self):
        super().setUp()
        source = self.write("takers.c", SOURCE.encode())
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", self.path("takers"), source],
                       check=True)
        self.trace, said = self.record(self.path("takers"))
        self.tids = dict(line.split() for line in said.splitlines())

    def test_the_threads_of_a_stack_are_told_in_text_and_json(self):
        """taker-2 frees one of its seven."""
        left = [("taker-1", 11), ("taker-2", 6), ("taker-0", 5)]
        stack, = json.loads(self.report(self.trace, "--format=json", "--function", "^get$"))["stacks"]
        self.assertEqual([(t["thread"], t["thread_name"], t["blocks"], t["bytes"]) for t in stack["threads"]],
                         [(int(self.tids[name]), name, blocks, 101 * blocks) for name, blocks in left])
        for view, indent in ("--flat", "\t\t"), ("--growth", "    "):
            for thread, who in (("*", "by 3 threads, most by %s taker-1 (11 blocks)" % self.tids["taker-1"]),
                                ("taker-0", "by thread %s taker-0" % self.tids["taker-0"])):
                text = self.report(self.trace, view, "--function", "^get$", "--thread", thread)
                self.assertRegex(text, r"(?m)^%sallocated .* s, %s$" % (indent, re.escape(who)))

    def test_the_times_of_a_stack_are_those_of_its_first_and_last_event(self):
        events = [line.split() for line in self.mleak("script", self.trace).out.splitlines()]
        times = [float(event[0]) for event in events if event[3:5] == ["malloc", "101"]]
        self.assertEqual(len(times), 23)
        text = self.report(self.trace, "--flat", "--function", "^get$")
        told = re.search(r"\tallocated (?:from ([\d.]+) to|at) ([\d.]+) s, by", text)
        last = float(told[2])
        for said, true in (float(told[1] or last), min(times)), (last, max(times)):
            self.assertAlmostEqual(said, true, delta=0.00051)

    def test_a_page_has_the_lines_of_its_stacks(self):
        line = 1 + SOURCE.split("/* the line */")[0].count("\n")
        page = self.report(self.trace, "--format=html", "--function", "^get$")
        self.assertEqual([stack.frames[0] for stack in pagetest.Page(page).stacks],
                         ["get [takers] %s:%d" % (self.path("takers.c"), line)])
