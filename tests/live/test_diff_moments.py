"""`mleak diff --at A,B FILE`: a program that does as it is told, and rests between two moments."""

import csv
import io
import json
import re
import subprocess
import time

import pagetest
from backends import both_backends
from mleaktest import Case, parse_folded, read_line
from trace_reader import FILE_HEADER

# A free has the time of the allocation before it: each phase begins with one.
SOURCE = r"""
#include <stdlib.h>
#include <unistd.h>
#define F __attribute__((noipa))
static void *kept[2][20];
F void *get(size_t size) { void *p = malloc(size); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
F void stays(int n) { while (n--) get(101); }
F void grows(int n) { while (n--) get(103); }
F void shrinks(int n) { while (n--) kept[0][n] = get(107); }
F void goes(int n) { while (n--) kept[1][n] = get(109); }
F void comes(int n) { while (n--) get(113); }
static void rest(void) { char c; write(1, "done\n", 5); if (read(0, &c, 1) != 1) _exit(1); }
static const int plan[3][5] = {{0, 3, 5, 11, 13}, {17, 0, 2}, {1000, 0, 1000}};
int main(void)
{
	for (int phase = 0; phase < 3; phase++) {
		comes(plan[phase][0]);
		stays(plan[phase][1]);
		grows(plan[phase][2]);
		shrinks(plan[phase][3]);
		goes(plan[phase][4]);
		for (int i = 0; phase == 1 && i < 9; i++)
			free(kept[0][i]);
		for (int i = 0; phase == 1 && i < 13; i++)
			free(kept[1][i]);
		rest();
	}
	return 0;
}
"""
REST_S = 0.1
EXPECTED = {"stays": ("same", 303, 303, 3, 3), "grows": ("grown", 515, 721, 5, 7),
            "shrinks": ("shrunk", 1177, 214, 11, 2), "goes": ("gone", 1417, 0, 13, 0),
            "comes": ("new", 0, 1921, 0, 17)}


@both_backends
class MomentsTest(Case):
    def setUp(self):
        super().setUp()
        self.write("app.c", SOURCE.encode())
        self.assertEqual(self.finish(self.spawn(["gcc", "-O1", "-g", "-o", "app", "app.c"])).status, 0)
        recorder = self.start_mleak("record", "-o", "x.mlk", "--", "./app", stdin=subprocess.PIPE)
        moments = []
        for _ in range(3):
            self.assertEqual(read_line(recorder), "done")
            # The library's times are those of the processor's counter, and as exact as the recorder could
            # read both clocks at one moment.  On a busy machine it may be interrupted between them.
            time.sleep(REST_S)
            moments.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
            time.sleep(REST_S)
            recorder.stdin.write(b"x")
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.trace = self.path("x.mlk")
        with open(self.trace, "rb") as file:
            start = FILE_HEADER.unpack(file.read(FILE_HEADER.size))[9]
        self.at = ["%d.%09d" % divmod(m - start, 10 ** 9) for m in moments]

    def diff(self, *args, paths=None, status=0):
        result = self.mleak("diff", *args, *(paths or [self.trace]))
        self.assertEqual((result.status, result.err), (status, ""))
        return result.out

    def moments(self):
        return "--at=%s,%s" % (self.at[0], self.at[1])

    def functions(self, names):
        found = [name for name in EXPECTED if name in names]
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def test_csv(self):
        found = {}
        for row in csv.DictReader(io.StringIO(self.diff(self.moments(), "--format=csv"), newline="")):
            name = self.functions(row["stack"].split(";"))
            if name:
                found[name] = (row["change"], *[int(row[key]) for key in (
                    "bytes_before", "bytes_after", "blocks_before", "blocks_after")])
        self.assertEqual(found, EXPECTED)

    def test_json(self):
        report = json.loads(self.diff(self.moments(), "--format=json"))
        found = {}
        for stack in report["stacks"]:
            name = self.functions([frame["function"] for frame in stack["frames"]])
            if name:
                sides = stack["before"], stack["after"]
                found[name] = (stack["change"], *[s["bytes"] for s in sides], *[s["blocks"] for s in sides])
        self.assertEqual(found, EXPECTED)
        for key, text in (("at_before_ns", self.at[0]), ("at_ns", self.at[1])):
            self.assertEqual(report["shown"][key], int(text.replace(".", "")))
        self.assertEqual(report["before"]["path"], report["after"]["path"])

    def test_folded(self):
        found = {}
        for line in self.diff(self.moments(), "--folded").splitlines():
            stack, before, after = line.rsplit(" ", 2)
            name = self.functions(stack.split(";"))
            if name:
                found[name] = int(before), int(after)
        self.assertEqual(found, {name: values[1:3] for name, values in EXPECTED.items()})

    def test_html(self):
        page = self.diff(self.moments(), "--format=html")
        page = pagetest.Page(page)
        self.assertRegex(page.data["title"], r"'.*x.mlk' at [\d.]+ s since [\d.]+ s$")
        for name, (_, before, after, *_) in EXPECTED.items():
            found = [(node.before_bytes, node.bytes) for node in page.nodes if node.path[-1].startswith(name)]
            self.assertIn((before, after), found, name)

    def test_text(self):
        text = self.diff(self.moments())
        self.assertRegex(text, r"(?m)^before .* %s s of +[\d.]+ s recorded" % re.escape("%.3f" % float(self.at[0])))
        self.assertRegex(text, r"(?m)^after .* %s s of +[\d.]+ s recorded" % re.escape("%.3f" % float(self.at[1])))
        self.assertRegex(text, r"(?m)^new +\+1,921 +\+17 +0 +1,921$")
        self.assertRegex(text, r"(?m)^gone +-1,417 +-13 +1,417 +0$")

    def test_what_it_is_of_each_moment(self):
        """Each side is what a report of that moment says."""
        rows = json.loads(self.diff(self.moments(), "--format=json"))
        for side, at in (("before", self.at[0]), ("after", self.at[1])):
            folded = parse_folded(self.report(self.trace, "--folded", "--at=" + at))
            self.assertEqual(rows[side]["outstanding"]["bytes"], sum(s.bytes for s in folded))

    def test_the_same_moment_and_the_end(self):
        same = self.diff("--at=%s,%s" % (self.at[1], self.at[1]))
        self.assertIn("0 stacks differ", same)
        self.assertIn("+113,000", self.diff("--at=%s,%s" % (self.at[1], self.at[2])))

    def test_the_exit_status(self):
        self.diff(self.moments(), "--fail-on-leak", status=1)
        self.diff("--at=%s,%s" % (self.at[1], self.at[1]), "--fail-on-leak", status=0)

    def test_two_traces(self):
        """The first moment is of the first trace, and they need no order then."""
        backwards = self.diff("--at=%s,%s" % (self.at[1], self.at[0]), paths=[self.trace, self.trace])
        self.assertRegex(backwards, r"(?m)^gone +-1,921 +-17 +1,921 +0$")

    def test_a_pipe(self):
        with open(self.trace, "rb") as file:
            result = subprocess.run([self.program, "diff", self.moments(), "--folded", "-"], input=file.read(),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(result.stdout.decode(), self.diff(self.moments(), "--folded"))

    def test_refusals(self):
        for args, word in ((["diff", "--at=2,1", self.trace], "the earlier one first"),
                           (["diff", "--at=1", self.trace], "give --at A,B"),
                           (["diff", self.trace], "usage: mleak diff"),
                           (["diff", "--at=1,", self.trace], "--at wants"),
                           (["diff", "--at=1,2,3", self.trace], "--at wants"),
                           (["report", "--at=1,2", self.trace], "only for a difference")):
            with self.subTest(args=args):
                result = self.mleak(*args)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err, naming=word)
        result = self.mleak("diff", "--at=0,1000", self.trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="ended after")
