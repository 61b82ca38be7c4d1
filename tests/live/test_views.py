"""Views and filters of `mleak report`, on a program whose every block is known."""

import collections
import csv
import io
import json
import re
import subprocess

from backends import both_backends, either_backend
from mleaktest import Case, number, parse_folded, parse_totals, parse_tree

# Blocks and bytes of each phase are primes; 150 ms are between two of them.  The worker stays for a
# while: its name is read from /proc, as that of ThreadTest's cannot be.
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#define F __attribute__((noipa))
static void *a[7];
F void *get(size_t size) { void *p = malloc(size); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
F void phase_a(void) { for (volatile int i = 0; i < 7; i++) a[i] = get(101); }
F void phase_b(void) { for (volatile int i = 0; i < 11; i++) get(203); }
F void phase_c(void) { for (volatile int i = 0; i < 13; i++) get(307); }
F void burst(void) { free(get(50021)); }
F void churn(void) { for (volatile int i = 0; i < 17; i++) free(get(409)); }
F void in_worker(void) { for (volatile int i = 0; i < 5; i++) get(503); }
static void *worker(void *arg) { prctl(PR_SET_NAME, "worker-x"); usleep(50000); in_worker(); usleep(300000); return arg; }
static void nap(void) { usleep(150000); }
int main(void)
{
	pthread_t thread;
	phase_a(); nap();
	phase_b(); burst(); nap();
	for (int i = 0; i < 7; i++) free(a[i]);
	nap();
	phase_c(); churn();
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	return 0;
}
"""
A, B, C, W = (7, 707), (11, 2233), (13, 3991), (5, 2515)


@both_backends
class ViewsTest(Case):
    def setUp(self):
        super().setUp()
        source = self.write("phases.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", self.path("phases"), source],
                       check=True)
        self.trace, _ = self.record(self.path("phases"))

    def json(self, *args):
        return json.loads(self.report(self.trace, "--format=json", *args))

    def by_phase(self, *args, kind="outstanding"):
        """Blocks and bytes of each phase."""
        report, sums = self.json(*args), collections.defaultdict(lambda: (0, 0))
        for stack in report["stacks"]:
            for frame in stack["frames"]:
                name = report["frames"][frame]["function"]
                if re.fullmatch("phase_.|burst|churn|in_worker", name):
                    more = stack[kind]
                    sums[name] = (sums[name][0] + more["blocks"], sums[name][1] + more["bytes"])
        return {name: amount for name, amount in sums.items() if amount[0]}

    def first(self, name):
        """When a phase began, in seconds since the start, by the first allocation that remains."""
        report = self.json()
        return min(s["first_ns"] for s in report["stacks"]
                   if name in [report["frames"][f]["function"] for f in s["frames"]]) / 1e9

    def table(self, *args):
        rows = list(csv.reader(io.StringIO(self.report(self.trace, "--format=csv", *args),
                                           newline="")))
        name = rows[0].index(args[args.index("--by") + 1])
        return rows[0], {row[name]: tuple(map(int, row[1::-1])) for row in rows[1:]}

    def test_all(self):
        self.assertEqual(self.by_phase(), {"phase_b": B, "phase_c": C, "in_worker": W})

    def test_thread_by_name_and_by_number(self):
        self.assertEqual(self.by_phase("--thread", "worker-x"), {"in_worker": W})
        self.assertEqual(self.by_phase("--thread", "work*"), {"in_worker": W})
        _, threads = self.table("--by", "thread")
        tid = next(name.split()[0] for name in threads if name.endswith(" worker-x"))
        self.assertEqual(self.by_phase("--thread", tid), {"in_worker": W})
        self.assertIn("'nobody'", self.mleak("report", "--thread", "nobody", self.trace).err)

    def test_by_thread_and_size(self):
        head, threads = self.table("--by", "thread")
        self.assertEqual(head[:3], ["outstanding_bytes", "outstanding_blocks", "thread"])
        total = self.json()["totals"]["outstanding"]
        worker = [amount for name, amount in threads.items() if name.endswith(" worker-x")]
        self.assertEqual(worker, [W])
        self.assertEqual(sum(amount[1] for amount in threads.values()), total["bytes"])
        _, sizes = self.table("--by", "size", "--function", "phase|in_worker")
        self.assertEqual(sizes, {"129 - 256": B, "257 - 512": (C[0] + W[0], C[1] + W[1])})

    def test_by_function_module_and_file(self):
        names = {"phase_b": B, "phase_c": C, "in_worker": W}
        _, own = self.table("--by", "function", "--function", "phase|in_worker")
        self.assertEqual(own["get"], (29, 8739))
        rows = csv.DictReader(io.StringIO(self.report(self.trace, "--format=csv", "--by", "function"),
                                          newline=""))
        deep = {row["function"]: (int(row["blocks_with_callees"]), int(row["bytes_with_callees"]))
                for row in rows}
        self.assertEqual({name: deep[name] for name in names}, names)
        _, modules = self.table("--by", "module")
        self.assertEqual(modules[self.path("phases")], (29, 8739))
        _, files = self.table("--by", "file")
        self.assertEqual(files[self.path("phases.c")], (29, 8739))

    def test_by_age_as_text(self):
        text = self.report(self.trace, "--by", "age")
        rows = re.findall(r"^ +([\d,]+) +([\d,]+)  (< 1 s|1 s - 10 s)$", text, re.M)
        report = self.json()
        sums = {}
        # On a slow machine some may be older than the phases take.
        for stack in report["stacks"]:
            for age in stack["ages"]:
                had = sums.get(age["from_ns"], (0, 0))
                sums[age["from_ns"]] = (had[0] + age["bytes"], had[1] + age["blocks"])
        told = {0 if age == "< 1 s" else 10**9: (number(size), number(blocks)) for size, blocks, age in rows}
        self.assertEqual({age: amount for age, amount in told.items() if amount[1]}, sums)
        outstanding = parse_totals(text).outstanding
        self.assertEqual(tuple(map(sum, zip(*told.values()))), (outstanding.bytes, outstanding.blocks))

    def test_function_and_module(self):
        self.assertEqual(self.by_phase("--function", "^phase_[bx]$"), {"phase_b": B})
        self.assertEqual(self.by_phase("--module", "phases", "--function", "worker"),
                         {"in_worker": W})
        self.assertIn("'nothing'", self.mleak("report", "--module", "nothing", self.trace).err)
        self.assertIn("in_worker", self.by_phase("--module", "libc.so*"))

    def test_least_bytes_and_blocks(self):
        self.assertEqual(self.by_phase("--min-bytes", "2515"), {"phase_c": C, "in_worker": W})
        self.assertEqual(self.by_phase("--min-bytes", "1K", "--min-blocks", "11"),
                         {"phase_b": B, "phase_c": C})
        self.assertEqual(self.by_phase("--min-bytes", "1M"), {})

    def test_what_is_filtered_is_counted(self):
        for args in (["--function", "phase_b"], ["--thread", "worker-x"], ["--min-blocks", "12"]):
            report = self.json(*args)
            shown = sum(s["outstanding"]["bytes"] for s in report["stacks"])
            self.assertEqual(shown + report["filtered"]["bytes"],
                             report["totals"]["outstanding"]["bytes"])
            self.assertGreater(report["filtered"]["bytes"], 0)

    def test_at(self):
        b = self.first("phase_b")
        self.assertEqual(self.by_phase("--at", "%.6f" % (b - 0.07)), {"phase_a": A})
        self.assertEqual(self.by_phase("--at", "%dms" % (1000 * b + 70)),
                         {"phase_a": A, "phase_b": B})
        # a report of that moment, not of a part of the end's
        totals = parse_totals(self.report(self.trace, "--at", "%.6f" % (b + 0.07)))
        self.assertEqual(totals.allocations.bytes - totals.frees.bytes, totals.outstanding.bytes)

    def test_between(self):
        b, c = self.first("phase_b"), self.first("phase_c")
        self.assertEqual(self.by_phase("--between", "%.6f,%.6f" % (b - 0.07, c - 0.07)),
                         {"phase_b": B})
        self.assertEqual(self.by_phase("--between", "%.6f,%.6f" % (0, b + 0.07)),
                         {"phase_a": A, "phase_b": B})
        self.assertEqual(self.by_phase("--between", "%.6f,1h" % (c - 0.07)),
                         {"phase_c": C, "in_worker": W})

    def test_older(self):
        report = self.json()
        age = report["trace"]["duration_ns"] / 1e9 - self.first("phase_c")
        self.assertEqual(self.by_phase("--older", "%.6f" % (age + 0.07)), {"phase_b": B})
        self.assertEqual(self.by_phase("--older", "1h"), {})

    def folded(self, cost):
        sums = collections.Counter()
        for stack in parse_folded(self.report(self.trace, "--folded", "--cost", cost)):
            for frame in stack.frames:
                if re.fullmatch("phase_.|burst|churn|in_worker", frame):
                    sums[frame] += stack.bytes
        return dict(sums)

    def test_costs(self):
        self.assertEqual(self.folded("outstanding"),
                         {"phase_b": B[1], "phase_c": C[1], "in_worker": W[1]})
        self.assertEqual(self.folded("allocated"),
                         {"phase_a": A[1], "phase_b": B[1], "phase_c": C[1], "in_worker": W[1],
                          "burst": 50021, "churn": 17 * 409})
        self.assertEqual(self.folded("peak"),
                         {"phase_a": A[1], "phase_b": B[1], "burst": 50021})
        self.assertEqual(self.folded("temporary"), {"burst": 1, "churn": 17})

    def test_the_timeline_tells_the_peak_and_whose_it_was(self):
        peak = self.json()["totals"]["peak"]
        self.assertGreaterEqual(peak["bytes"], A[1] + B[1] + 50021)
        text = self.report(self.trace, "--timeline", "--function", "phase_|burst")
        self.assertRegex(text, r"(?m)^peak of all stacks: ([\d,]+) bytes in ([\d,]+) blocks; "
                               r"of these stacks then: 52,961 bytes in 19 blocks$")
        self.assertIn("stacks: {:,} bytes in {:,} blocks".format(peak["bytes"], peak["blocks"]), text)

    def test_what_lived_no_longer_than_asked_for_is_temporary_too(self):
        """The blocks of phase_a live for at least 450 ms."""
        for ms, more in (("1", {}), ("100ms", {}), ("60s", {"phase_a": 7}), ("60000", {"phase_a": 7})):
            sums = collections.Counter()
            report = self.json("--temporary", ms)
            text = self.report(self.trace, "--folded", "--cost=temporary", "--temporary", ms)
            for stack in parse_folded(text):
                for frame in stack.frames:
                    if re.fullmatch("phase_.|burst|churn", frame):
                        sums[frame] += stack.bytes
            if ms == "1":  # the program may have been interrupted for that long
                self.assertLessEqual(set(sums), {"burst", "churn"})
                self.assertTrue(sums["burst"] <= 1 and 0 < sums["churn"] <= 17, sums)
            else:
                self.assertEqual(dict(sums), {"burst": 1, "churn": 17, **more})
            self.assertEqual([s["temporary"] for s in report["stacks"]], [0] * len(report["stacks"]))

    def test_inverted_begins_at_the_function_that_allocated(self):
        nodes = parse_tree(self.report(self.trace, "--inverted", "--function", "phase|in_worker"))
        self.assertEqual(nodes[0][:], (8739, 29, "get"))
        self.assertIn((B[1], B[0], "phase_b"), [tuple(n) for n in nodes])

    def test_fail_on_leak(self):
        for status, args in ((1, ["--fail-on-leak"]), (1, ["--fail-on-leak=2000"]),
                             (0, ["--fail-on-leak=1M"]),
                             (0, ["--fail-on-leak", "--function", "churn"]),
                             (1, ["--fail-on-leak=2514", "--function", "worker"]),
                             (0, ["--fail-on-leak=2515", "--function", "worker"])):
            with self.subTest(args=args):
                result = self.mleak("report", *args, self.trace)
                self.assertEqual((result.status, result.err), (status, ""))

    def test_suppressions_count_what_they_match(self):
        path = self.write("supp", b"# known\n\nleak:phase_b\r\n leak:in_*er$\nleak:^never\n")
        self.assertEqual(self.by_phase("--suppressions", path), {"phase_c": C})
        text = self.report(self.trace, "--suppressions", path)
        self.assertIn("\nsuppressed:\n       2,233          11  phase_b\n"
                      "       2,515           5  in_*er$\n", text)
        self.assertNotIn("never", text)

    def test_suppressions_match_modules_and_source_files(self):
        for pattern in b"leak:phases.c$", b"leak:mleak-test-*phases":
            path = self.write("supp", pattern)
            self.assertEqual(self.by_phase("--suppressions", path), {})

    def test_what_is_no_suppression_is_refused(self):
        path = self.write("supp", b"leak:x\nrace:y\n")
        result = self.mleak("report", "--suppressions", path, self.trace)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, path + "' line 2")


@either_backend
class AgesTest(Case):
    SOURCE = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) void *get(void) { return malloc(101); }
int main(void)
{
	for (volatile int i = 0; i < 5; i++) {
		void *volatile p = get();
		(void)p;
		if (i == 2)
			usleep(1100000);
	}
	return 0;
}
"""

    def record_in_time(self):
        """The last blocks are less than a second old if the program was not held up for most of one."""
        for _ in range(5):
            trace, _ = self.record(self.path("ages"))
            if json.loads(self.report(trace, "--format=json"))["trace"]["duration_ns"] < 1.9e9:
                return trace
        self.skipTest("this machine lets no program run for a second without holding it up")

    def test_the_ages_of_each_stack_are_those_of_its_blocks(self):
        """Three blocks and two of one stack, with more than a second between."""
        self.write("ages.c", self.SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-o", "ages", "ages.c"], cwd=self.dir, check=True)
        trace = self.record_in_time()
        report = json.loads(self.report(trace, "--format=json", "--function", "^get$"))
        self.assertEqual([stack["ages"] for stack in report["stacks"]],
                         [[{"from_ns": 0, "blocks": 2, "bytes": 202},
                           {"from_ns": 10**9, "blocks": 3, "bytes": 303}]])
        line = "age: 2 blocks < 1 s, 3 blocks 1 s - 10 s\n"
        self.assertIn("\t\t" + line, self.report(trace, "--flat"))
        self.assertIn("    " + line, self.report(trace, "--growth"))
        at = "%dms" % (report["stacks"][0]["first_ns"] / 10**6 + 500)
        early = json.loads(self.report(trace, "--format=json", "--function", "^get$", "--at", at))
        self.assertEqual([stack["ages"] for stack in early["stacks"]],
                         [[{"from_ns": 0, "blocks": 3, "bytes": 303}]])


@both_backends
class ThreadTest(Case):
    SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
static void *blocks[7];
__attribute__((noipa)) static void *get(size_t size) { return malloc(size); }
static void *work(void *arg)
{
	prctl(PR_SET_NAME, "giver");
	for (int i = 0; i < 7; i++)
		blocks[i] = get(1009);
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		free(blocks[i]);
	return 0;
}
"""

    def test_a_name_that_is_none_for_a_terminal(self):
        """Its thread has ended before the recorder could ask the kernel for it."""
        source = self.SOURCE.replace('"giver"', '"a\\033[31m\\nb;0123456789"')
        self.write("odd.c", source.encode())
        subprocess.run(["gcc", "-O1", "-pthread", "-o", "odd", "odd.c"], cwd=self.dir, check=True)
        trace, _ = self.record(self.path("odd"))
        text = self.report(trace, "--by", "thread", "--function", "^get$")
        self.assertNotIn("\033", text)
        self.assertRegex(text, r"(?m)^ +4,036 +4 +7,063 +7 +0 +3  \d+ a\S*\[31m")

    def test_what_another_thread_frees_is_taken_from_the_thread_that_got_it(self):
        self.write("giver.c", self.SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-pthread", "-o", "giver", "giver.c"], cwd=self.dir, check=True)
        trace, _ = self.record(self.path("giver"))
        text = self.report(trace, "--by", "thread", "--function", "^get$")
        found = re.findall(r"^ +([\d,]+) +([\d,]+) +7,063 +7 +0 +3  (\d+) giver$", text, re.M)
        self.assertEqual([amount[:2] for amount in found], [("4,036", "4")])
        report = json.loads(self.report(trace, "--format=json", "--thread", "giver",
                                        "--function", "^get$"))
        self.assertEqual([(s["allocated"]["blocks"], s["freed"]["blocks"]) for s in report["stacks"]],
                         [(7, 3)])
