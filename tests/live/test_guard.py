"""Blocks that are written beyond their bounds: `mleak record --guard`."""

import json
import os
import re
import subprocess
import unittest

from mleaktest import MLEAK_FAST, ROOT, needs_bpf, parse_totals
from test_preload import PreloadCase

KINDS = ["beyond", "before", "string", "thread", "growing", "aligned"]

# A block of 47 bytes is overrun and lives, while other threads are in the allocator.
ENDS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *churn(void *arg)
{
	void *v[64] = {0};
	unsigned s = (unsigned)(long)arg;
	for (;;) {
		unsigned i = rand_r(&s) % 64;
		if (rand_r(&s) & 1) {
			free(v[i]);
			v[i] = rand_r(&s) & 1 ? malloc(rand_r(&s) % 200000) : aligned_alloc(64, 100);
		} else {
			v[i] = realloc(v[i], rand_r(&s) % 200000 + 1);
		}
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t;
	char *volatile p = malloc(47);
	p[48] = 'x';
	for (long i = 1; i < 5; i++)
		pthread_create(&t, NULL, churn, (void *)i);
	usleep(10000);
	if (argv[1][0] == 'r')
		return 5;
	if (argv[1][0] == 'c') {
		execv("/nonexistent", argv);
		execl("/bin/sh", "sh", "-c", "exit 5", NULL);
	}
	_exit(5);
}
"""

NEIGHBOURS = r"""
#include <stdlib.h>
#define FRAME __attribute__((noinline, noipa))
static char *p[5];
static FRAME void first(void) { p[0] = malloc(101); }
static FRAME void second(void) { p[1] = malloc(103); }
static FRAME void third(void) { p[2] = malloc(107); }
static FRAME void last(void) { free(p[1]); }
int main(void)
{
	free(malloc(5));
	first();
	second();
	third();
	((char *volatile)p[1])[103] = 0;
	last();
	return 0;
}
"""

# Each of 4 threads overruns 251 blocks by 3 bytes; one of them, aligned ones from below.
MANY = r"""
#include <pthread.h>
#include <stdlib.h>
static void *run(void *arg)
{
	for (int i = 0; i < 251; i++) {
		char *volatile p = arg ? malloc(41 + i) : aligned_alloc(128, 41 + i);
		long at = arg ? 41 + i : -16;
		p[at] = p[at + 1] = p[at + 2] = 'y';
		if (i % 2)
			free(p);
		else
			free(realloc(p, 9000));
	}
	return arg;
}
int main(void)
{
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
"""

# What lies behind a block is copied to behind another.
COPIED = r"""
#include <stdlib.h>
#include <string.h>
int main(void)
{
	char *p = malloc(47), *q = malloc(47);
	memset(p, 'p', 47);
	memcpy(q, p, 47 + 8);
	free(p);
	free(q);
	return 0;
}
"""

# The bookkeeping of ours before a block is overwritten, too: each byte by another one.
DEEP = r"""
#include <stdlib.h>
#include <string.h>
static void change(char *end, int nr)
{
	for (int i = 1; i <= nr; i++)
		end[-i] ^= 0x55;
}
int main(void)
{
	char *p = malloc(47), *q = aligned_alloc(64, 53), *r = malloc(59);
	memset(p, 'p', 47);
	change(p, 24);
	change(q, 30);
	change(r, 17);
	p = realloc(p, 9001);
	for (int i = 0; i < 47; i++)
		if (p[i] != 'p')
			return 1;
	free(p);
	free(q);
	free(r);
	return 0;
}
"""


class GuardCase(PreloadCase):
    program = MLEAK_FAST
    options = ("--guard",)

    def overruns(self, trace):
        found = json.loads(self.report(trace, "--format=json"))["overruns"]
        self.assertTrue(found["guarded"])
        return found

    def record_sample(self, *kinds, **how):
        """The trace, and (found, size, offset, length, path) of each line that the sample prints."""
        trace, out = self.record(self.sample("overrun"), *kinds, **how)
        lines = re.findall(r"^overrun: found=(\S+) size=(\d+) offset=(-?\d+) len=(\d+) path=(\S+)$",
                           out, re.M)
        self.assertEqual(len(lines), len(out.splitlines()))
        return trace, sorted((found, *map(int, numbers), path.split(";"))
                             for found, *numbers, path in lines)

    def said(self, trace):
        """The same, as the report says it; paths from main, or the thread's first function."""
        result = []
        for site in self.overruns(trace)["first_sites"]:
            self.assertEqual(site["blocks"], 1)
            self.assertEqual(site["changed"], site["length"])
            self.assertEqual(site["block"]["size"], site["size"])
            frames = [frame["function"] for frame in site["block"]["frames"]]
            until = frames.index("main" if "main" in frames else "in_thread")
            behind = site["side"] == "behind"
            offset = site["size"] + site["distance"] if behind else -site["distance"]
            result.append((site["found"]["at"], site["size"], offset, site["length"],
                           frames[until::-1]))
        return sorted(result)


class GuardTest(GuardCase):
    def test_what_the_sample_overruns_is_found_and_nothing_else(self):
        trace, truth = self.record_sample()
        self.assertEqual(len(truth), 10)
        self.assertEqual(self.said(trace), truth)
        sites = self.overruns(trace)
        self.assertEqual(sites["found"], 10)
        for site in sites["first_sites"]:
            self.assertEqual(site["bytes"], "00" if site["size"] == 61 else "78" * site["length"])
            frames = [frame["function"] for frame in site["found"]["frames"]]
            if site["found"]["at"] != "exit":
                self.assertEqual(frames[0], site["block"]["frames"][site["size"] not in (73, 83, 89)]
                                 ["function"])
            self.assertNotIn("libmleak", json.dumps(site["found"]["frames"]))

    def test_the_recorder_says_how_many_it_found(self):
        for kinds, said in ((["beyond", "before"], "2 overruns of blocks were found; the report shows them"),
                            (["beyond"], "1 overrun of a block was found; the report shows it"),
                            (["nothing"], None)):
            result = self.mleak("record", "--guard", "-o", self.path("x.mlk"), "--",
                                self.sample("overrun"), *kinds, **self.as_user)
            self.assertEqual(re.findall(r"\d+ overruns? .*", result.err), [said] if said else [])

    def test_the_text_tells_of_each(self):
        trace, truth = self.record_sample("beyond", "before")
        text = self.report(trace)
        self.assertIn("OVERRUNS: 2 found", text.split("\n\n")[0])
        tail = text[text.rindex("OVERRUNS: 2 found"):]
        self.assertRegex(tail, r"7 bytes were written behind a block of 47 bytes, from offset 47\n"
                         r" +offset +47:  78 78 78 78 78 78 78 +xxxxxxx\n  the block: 0x[0-9a-f]+, "
                         r"47 bytes, allocated at [^\n]*\n +make .*\n +beyond .*\n +main ")
        self.assertRegex(tail, r"1 byte was written before a block of 53 bytes, from offset -1\n")
        self.assertRegex(tail, r"found when thread \d+ \(overrun\) freed it, at .*, by\n +beyond ")

    def test_address_sanitizer_says_the_same(self):
        program = self.path("asan")
        subprocess.run(["gcc", "-g", "-O1", "-pthread", "-fsanitize=address", "-fno-builtin", "-o",
                        program, os.path.join(ROOT, "samples", "overrun.c")], check=True)
        trace, _ = self.record_sample()
        sites = {(s["size"], s["side"]): s for s in self.overruns(trace)["first_sites"]}
        for kind in KINDS:
            with self.subTest(kind):
                run = self.finish(self.spawn([program, kind],
                                             env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0")))
                where = re.search(r"is located (\d+) bytes? (to the left|to the right|before|after)"
                                  r"(?: of)? (\d+)-byte region", run.err)
                stack = re.search(r"allocated by .*\n((?: +#\d+ .*\n)+)", run.err)
                functions = re.findall(r" in (?!__interceptor_)(\w+) .*overrun\.c", stack[1])
                side = "before" if where[2] in ("to the left", "before") else "behind"
                site = sites[int(where[3]), side]
                self.assertEqual(site["distance"], int(where[1]))
                self.assertEqual([f["function"] for f in site["block"]["frames"]][:len(functions)],
                                 functions)

    def test_blocks_that_live_at_the_end(self):
        program = self.compile("ends", ENDS)
        for how, found in (("return", "exit"), ("_exit", "exit"), ("called", "exec")):
            with self.subTest(how):
                trace = self.path("x.mlk")
                result = self.mleak("record", "--guard", "-o", trace, "--", program, how,
                                    **self.as_user)
                self.assertEqual(result.status, 5, result.err)
                sites = self.overruns(trace)["first_sites"]
                self.assertEqual([(s["found"]["at"], s["size"], s["distance"]) for s in sites],
                                 [(found, 47, 1)])

    def test_neighbours(self):
        trace, _ = self.record(self.compile("neighbours", NEIGHBOURS))
        site, = self.overruns(trace)["first_sites"]
        self.assertEqual([(site[k]["size"], site[k]["frames"][0]["function"])
                          for k in ("before", "block", "after")],
                         [(101, "first"), (103, "second"), (107, "third")])
        self.assertEqual(site["found"]["frames"][0]["function"], "last")

    def test_many_in_several_threads(self):
        trace, _ = self.record(self.compile("many", MANY))
        found = self.overruns(trace)
        self.assertEqual(found["found"], 4 * 251)
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        self.assertEqual(sorted((s["side"], s["length"], s["blocks"]) for s in found["first_sites"]),
                         [("before", 3, 251), ("behind", 3, 3 * 251)])

    def test_of_blocks_that_are_left_out_too(self):
        many = self.compile("many", MANY)
        for options in (("-s", "10"), ("-z", "9000")):
            trace, _ = self.record(many, options=options)
            text = self.report(trace)
            self.assertIn("OVERRUNS: 1,004 found", text)
            self.assertEqual(len(re.findall(r"found when .* by\n +run  ", text)),
                             text.count("found when"))

    def test_the_bytes_behind_another_block_are_no_excuse(self):
        trace, _ = self.record(self.compile("copied", COPIED))
        site, = self.overruns(trace)["first_sites"]
        self.assertLess(site["distance"], 4)
        self.assertGreater(site["length"], 4)

    def test_what_is_overwritten_far_before_a_block(self):
        trace, _ = self.record(self.compile("deep", DEEP))
        sites = self.overruns(trace)["first_sites"]
        self.assertEqual(sorted((s["size"], s["side"], s["distance"]) for s in sites),
                         [(47, "before", 32), (53, "before", 32), (59, "before", 32)])

    def test_an_overrun_fails_a_check_for_leaks(self):
        trace, _ = self.record(self.sample("overrun"), "beyond")
        for options, status in (((), 0), (("--fail-on-leak",), 1), (("--fail-on-leak=1G",), 1)):
            self.assertEqual(self.mleak("report", *options, trace).status, status)
        trace, _ = self.record(self.sample("clean"))
        self.assertEqual(self.mleak("report", "--fail-on-leak", trace).status, 0)

    def test_formats_without_room_for_them_say_so(self):
        trace, _ = self.record(self.sample("overrun"), "beyond")
        result = self.mleak("report", "--folded", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="1 overrun of a block was found")

    def test_a_redacted_trace_has_no_byte_of_them(self):
        trace, _ = self.record(self.sample("overrun"), "beyond", options=["--redact"])
        site, = self.overruns(trace)["first_sites"]
        self.assertEqual((site["bytes"], site["length"]), ("", 7))

    def test_without_guard_nothing_is_said_of_overruns(self):
        self.options = ("--backend", "preload")
        trace, _ = self.record(self.sample("clean"))
        self.assertNotIn("overrun", self.report(trace))


@needs_bpf
class RootTest(GuardCase):
    as_user = {}

    def test_guard_takes_the_library_where_ebpf_is_allowed_too(self):
        trace, truth = self.record_sample("beyond")
        self.assertRegex(self.report(trace, "--dump"), r"(?m)backend preload$")
        self.assertEqual(self.said(trace), truth)


class RefusedTest(GuardCase):
    def refused(self, *args):
        result = self.mleak("record", "-o", self.path("x.mlk"), *args)
        self.assertEqual(result.status, 125)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        self.assert_one_message(result.err, naming="--guard")

    def test_with_ebpf(self):
        self.refused("--guard", "--backend", "bpf", "--", "true")

    def test_of_a_running_process(self):
        self.refused("--guard", "-p", str(os.getpid()))

    def test_without_recording(self):
        self.refused("--guard", "--dry-run", "--", "true")


del PreloadCase

if __name__ == "__main__":
    unittest.main()
