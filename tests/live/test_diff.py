"""`mleak diff`: two runs of a program of which every block is known, and of which one was changed."""

import csv
import io
import json
import re
import subprocess

from backends import both_backends
from mleaktest import Case

# PADDED makes all addresses differ.
SOURCE = r"""
#include <stdlib.h>
#define F __attribute__((noipa))
#ifdef PADDED
F int padding(int x) { volatile int y = x; for (int i = 0; i < x; i++) y += y * i; return y; }
#endif
#line 10
F void *get(size_t size) { void *p = malloc(size); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
F void stays(int n) { while (n--) get(101); }
F void grows(int n) { while (n--) get(103); }
F void shrinks(int n) { while (n--) get(107); }
F void goes(int n) { while (n--) get(109); }
F void comes(int n) { while (n--) get(113); }
int main(int argc, char **argv)
{
	int later = argc > 1;
	stays(3);
	grows(later ? 7 : 5);
	shrinks(later ? 2 : 11);
	goes(later ? 0 : 13);
	comes(later ? 17 : 0);
	return argv == 0;
}
"""
EXPECTED = {"stays": ("same", 303, 303, 3, 3), "grows": ("grown", 515, 721, 5, 7),
            "shrinks": ("shrunk", 1177, 214, 11, 2), "goes": ("gone", 1417, 0, 13, 0),
            "comes": ("new", 0, 1921, 0, 17)}


@both_backends
class DiffTest(Case):
    def make(self, folder, *flags, source=SOURCE):
        """Build the program in a folder of its own, with the same name; returns its path."""
        path = self.path(folder)
        subprocess.run(["mkdir", path], check=True)
        self.write("app.c", source.encode())
        subprocess.run(["gcc", "-O1", "-g", *flags, "-o", path + "/app", "app.c"], cwd=self.dir,
                       check=True)
        return path + "/app"

    def trace(self, name, *argv):
        path = self.path(name)
        result = self.mleak("record", "-o", path, "--", *argv)
        self.assertEqual(result.status, 0, result.err)
        return path

    def setUp(self):
        super().setUp()
        self.before = self.trace("before.mlk", self.make("one"))
        # another build, at another place, with other addresses
        self.after = self.trace("after.mlk", self.make("two", "-DPADDED"), "later")

    def diff(self, *args, status=0):
        result = self.mleak("diff", *args, self.before, self.after)
        self.assertEqual((result.status, result.err), (status, ""))
        return result.out

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.diff("--format=csv", *args), newline="")))

    def by_function(self, rows):
        found = {}
        for row in rows:
            for name in set(row["stack"].split(";")) & set(EXPECTED):
                self.assertNotIn(name, found)
                found[name] = (row["change"], *[int(row[key]) for key in (
                    "bytes_before", "bytes_after", "blocks_before", "blocks_after")])
        return found

    def test_stacks_of_different_builds_are_matched(self):
        self.assertEqual(self.by_function(self.rows()), EXPECTED)

    def test_the_largest_change_is_first(self):
        changes = [abs(int(row["bytes_after"]) - int(row["bytes_before"])) for row in self.rows()]
        self.assertEqual(changes, sorted(changes, reverse=True))
        self.assertEqual(list(self.by_function(self.rows("-n", "2"))), ["comes", "goes"])

    def test_a_stack_that_has_grown_to_what_is_asked_for_is_no_new_one(self):
        for args in ["--min-bytes", "600"], ["--min-blocks", "7"]:
            rows = self.rows(*args)
            least, key = int(args[1]), args[0][len("--min-"):]
            found = self.by_function(rows)
            self.assertEqual(found, {name: row for name, row in EXPECTED.items()
                                     if max(row[1:3] if key == "bytes" else row[3:5]) >= least})
            self.assertEqual(found["grows"][0], "grown")
            self.assertEqual(found["shrinks"][0], "shrunk")
            report = json.loads(self.diff("--format=json", *args))
            self.assertEqual(report["before"]["outstanding"]["bytes"],
                             sum(int(row["bytes_before"]) for row in rows))
            self.assertIn("stacks with at least", report["shown"]["text"])
        # 206 bytes more in one stack, 1,921 in another
        self.diff("--min-bytes", "600", "--fail-on-leak=2127")
        self.diff("--min-bytes", "600", "--fail-on-leak=2126", status=1)

    def test_text(self):
        text = self.diff()
        for name, (change, *_) in EXPECTED.items():
            if change == "same":
                self.assertNotIn("    %s  " % name, text)
            else:
                self.assertRegex(text, r"(?m)^    %s  \S*/app.c:\d+$" % name)
        self.assertRegex(text, r"(?m)^new +\+1,921 +\+17 +0 +1,921$")
        self.assertRegex(text, r"(?m)^gone +-1,417 +-13 +1,417 +0$")
        self.assertRegex(text, r"(?m)^before +3,412 bytes +32 blocks ")
        # what is left is more the longer was recorded
        report = json.loads(self.diff("--format=json"))
        for side, path in (("before", self.before), ("after", self.after)):
            seconds = re.search(r"\), ([\d.]+) s on ", self.report(path).splitlines()[0])[1]
            self.assertRegex(text, r"(?m)^%s .* %s s recorded  %s$" % (side, seconds, re.escape(path)))
            self.assertAlmostEqual(report[side]["duration_ns"] / 1e9, float(seconds), delta=0.001)
        self.assertIn("\n4 stacks differ, 0 of them are not shown; 1 is the same\n", text)

    def test_folded_with_two_columns(self):
        found = {}
        for line in self.diff("--folded").splitlines():
            stack, before, after = re.fullmatch(r"([^;]+(?:;[^;]+)+) (\d+) (\d+)", line).groups()
            found[stack.split(";")[-2]] = (int(before), int(after))
        self.assertEqual(found, {name: row[1:3] for name, row in EXPECTED.items()})

    def test_json_has_the_same_rows_and_sums(self):
        report = json.loads(self.diff("--format=json"))
        self.assertEqual((report["schema"], report["version"]), ("mleak-diff", 1))
        rows = [{"change": stack["change"],
                 "stack": ";".join(f["function"] for f in reversed(stack["frames"])),
                 **{"%s_%s" % (kind, side): str(stack[side][kind])
                    for kind in ("bytes", "blocks") for side in ("before", "after")}}
                for stack in report["stacks"]]
        self.assertEqual(self.by_function(rows), EXPECTED)
        for row, expected in zip(rows, self.rows()):
            self.assertEqual({**row, "stack": "", "places": ""},
                             {**expected, "stack": "", "places": ""})
        for side, path in (("before", self.before), ("after", self.after)):
            self.assertEqual(report[side]["path"], path)
            for kind in "blocks", "bytes":
                self.assertEqual(report[side]["outstanding"][kind],
                                 sum(int(row["%s_%s" % (kind, side)]) for row in rows))
        self.assertEqual(json.loads(self.diff("--format=json", "-n", "2"))["left_out"], len(rows) - 2)

    def test_it_is_report_with_an_option(self):
        result = self.mleak("report", "--diff", self.before, self.after)
        self.assertEqual((result.status, result.out, result.err), (0, self.diff(), ""))

    def test_a_trace_does_not_differ_from_itself(self):
        result = self.mleak("diff", self.after, self.after)
        self.assertIn("\n0 stacks differ, 0 of them are not shown; 4 are the same\n", result.out)

    def test_lines_that_have_moved_make_no_other_stack(self):
        moved = SOURCE.replace("\tstays(3);\n", "\n\n\tstays(3);\n\tstays(2);\n")
        before, after = (self.trace(name + ".mlk", self.make(name, source=source)) for
                         name, source in (("old", SOURCE), ("new", moved)))
        result = self.mleak("diff", "--format=csv", before, after)
        rows = list(csv.DictReader(io.StringIO(result.out, newline="")))
        self.assertEqual({row["change"] for row in rows}, {"same", "new"})
        stays = [row for row in rows if "stays" in row["stack"]]
        self.assertEqual([(row["change"], row["bytes_before"], row["bytes_after"])
                          for row in stays], [("new", "0", "202"), ("same", "303", "303")])
        # Their names are the same: it is the lines that tell the two apart.
        self.assertEqual(stays[0]["stack"], stays[1]["stack"])
        lines = [int(re.search(r"app\.c:(\d+);[^;]*app\.c:11;", row["places"])[1])
                 for row in stays]
        self.assertEqual(lines[0], lines[1] + 1)
        self.assertIn("\n1 stack differs", self.mleak("diff", before, after).out)
        self.assertRegex(self.mleak("diff", "--folded", before, after).out, r"stays;get 303 505\n")

    def test_filters_are_for_both(self):
        self.assertEqual(set(self.by_function(self.rows("--function", "^g(row|o)"))),
                         {"grows", "goes"})

    def test_fail_on_leak_is_about_what_came(self):
        self.diff("--fail-on-leak", status=1)  # although in all there is less
        self.diff("--fail-on-leak", "--function", "goes|shrinks|stays", status=0)
        for name in "csv", "json", "folded":
            self.diff("--fail-on-leak=2127", "--format=" + name, status=0)
            self.diff("--fail-on-leak=2126", "--format=" + name, "-n", "1", status=1)
        self.diff("--fail-on-leak=2127", "--function", "comes|grows", status=0)
        self.diff("--fail-on-leak=2126", "--function", "comes|grows", status=1)

    def test_wrong_usage(self):
        for args in ([], [self.before], [self.before, self.after, self.after],
                     [self.before, self.path("none.mlk")],
                     ["--format=pprof", self.before, self.after],
                     ["--growth", self.before, self.after]):
            with self.subTest(args=args):
                result = self.mleak("diff", *args)
                self.assertEqual((result.status, result.out), (2, ""))
                self.assert_one_message(result.err)
