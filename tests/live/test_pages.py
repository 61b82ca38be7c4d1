"""What of mappings is in use, reserved or given back is what the kernel says of them."""

import json
import os
import re
import signal
import subprocess

from backends import both_backends
from mleaktest import TESTS, Case, needs_bpf, read_line, wait_until

PAGE = 4096

MANY = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
int main(void)
{
	char *base = mmap(0, 12000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 12000; i += 2)
		if (madvise(base + i * 4096, 4096, MADV_DONTNEED))
			return 1;
	return 0;
}
"""

# It prints how many pages of shared memory there are: at first, after MADV_DONTNEED and MADV_REMOVE.
SHARED = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGE = 4096, PAGES = 7 };
static char *base;
static int resident(void)
{
	unsigned char there[PAGES];
	int nr = 0;
	if (mincore(base, PAGES * PAGE, there))
		return -1;
	for (int i = 0; i < PAGES; i++)
		nr += there[i] & 1;
	return nr;
}
int main(void)
{
	char line[40];
	int before, after;
	base = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(base, 1, PAGES * PAGE);
	before = resident();
	if (madvise(base, PAGES * PAGE, MADV_DONTNEED))
		return 1;
	after = resident();
	if (madvise(base, 3 * PAGE, MADV_REMOVE))
		return 2;
	/* printf would allocate */
	return write(1, line, snprintf(line, sizeof(line), "%d %d %d\n", before, after, resident())) < 0;
}
"""


class PagesCase(Case):
    def totals(self, trace):
        return json.loads(self.mleak("report", "--format=json", trace).out)["totals"]

    def in_pages(self, totals):
        """As the programs tell it."""
        return "pages: in_use=%d reserved=%d given_back=%d" % tuple(
            totals[name]["bytes"] // PAGE for name in ("outstanding", "reserved", "given_back"))

    def assert_pages(self, trace, line):
        """The sums of @trace are those of the sample's @line."""
        totals = self.totals(trace)
        self.assertEqual(self.in_pages(totals), line)
        self.assertEqual(totals["allocated"]["bytes"],
                         sum(totals[sum_name]["bytes"] for sum_name in ("freed", "outstanding", "implied")))

    def tell(self, process):
        process.stdin.write(b"\n")
        return read_line(process)

    def wait_for_pages_used_again(self, trace):
        """It may be looked at them while the sample writes: they may come in two events."""
        wait_until(lambda: sum(map(int, re.findall(r" resident (\d+) ", self.mleak("script", trace).out)))
                   == 17 * PAGE, "pages that are used again")

    def close(self, process):
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)


@both_backends
class PagesTest(PagesCase):
    def test_each_step_is_seen(self):
        """Recorded from its start.  What is used again is seen within about a second."""
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", self.sample("pages"), stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        lines = [self.tell(record) for _ in range(4)]
        self.assertEqual(lines[2], "pages: in_use=158 reserved=798 given_back=53")
        self.wait_for_pages_used_again(trace)
        self.close(record)
        self.assert_pages(trace, lines[3])
        events = re.findall(r" (\S+) (\d+) 0x[0-9a-f]+( reserved)?$", self.mleak("script", trace).out, re.M)
        self.assertEqual([(name, int(size) // PAGE, bool(reserved)) for name, size, reserved in events
                          if name != "resident"],
                         [("mmap", 1009, True), ("accessible", 211, False), ("given-back", 53, False)])
        head = self.mleak("report", "--bytes", trace).out
        self.assertRegex(head, r"\n  reserved +2 ranges +3,268,608 bytes  \(PROT_NONE: needs no memory\)\n")
        self.assertRegex(head, r"\n  given back +2 ranges +147,456 bytes  \(by madvise: needs no memory\)\n")
        facts = self.mleak("info", trace).out
        self.assertRegex(facts, r"(?m)^page events +3$")
        # and of each address is told what it is
        at = int(re.search(r" mmap \d+ 0x([0-9a-f]+) reserved$", self.mleak("script", trace).out, re.M)[1], 16)
        for page, use in ((0, "reserved"), (101, None), (101 + 7, "given back"), (101 + 7 + 11, None),
                          (101 + 210, None), (1008, "reserved")):
            answer, = json.loads(self.mleak("report", "--format=json", "--addr", hex(at + page * PAGE),
                                            trace).out)["processes"]
            self.assertEqual((answer["held"], answer.get("use")), (True, use), page)
        self.assertIn("which is reserved (PROT_NONE)", self.mleak("report", "--addr", hex(at), trace).out)

    def test_what_is_dropped_or_read_otherwise_is_the_same(self):
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", self.sample("pages"), stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        lines = [self.tell(record) for _ in range(4)]
        self.wait_for_pages_used_again(trace)
        self.close(record)
        for name, options in (("unwound.mlk", []), ("dropped.mlk", ["--drop-raw"])):
            self.assertEqual(self.mleak("unwind", *options, "-o", self.path(name), trace).status, 0)
            self.assert_pages(self.path(name), lines[3])

    def check_random(self, seeds, *flags):
        program = self.path("target")
        subprocess.run(["gcc", "-O2", "-o", program, os.path.join(TESTS, "live", "pages_target.c"), *flags], check=True)
        os.chmod(self.dir, 0o777)
        for seed in seeds:
            with self.subTest(seed=seed):
                trace = self.path("%d.mlk" % seed)
                # the library is not told what of the kernel's a mapping was that is moved
                moves_reserved = "0" if hasattr(self, "preloaded") else "1"
                record = self.start_mleak("record", "-o", trace, "--", program, str(seed), moves_reserved,
                                          stdin=subprocess.PIPE)
                line = read_line(record)
                self.assertRegex(line, r"=[1-9]\d* .*=[1-9]\d* .*=[1-9]\d*$")
                wait_until(lambda: self.in_pages(self.totals(trace)) == line, line)
                self.close(record)
                self.assert_pages(trace, line)

    def test_what_happens_at_random(self):
        self.check_random(range(1, 5))

    def test_more_than_is_followed_is_told(self):
        """6,000 ranges, of which 4,096 are followed."""
        source = self.write("many.c", MANY.encode())
        subprocess.run(["gcc", "-O2", "-o", self.path("many"), source], check=True)
        os.chmod(self.dir, 0o777)
        trace = self.path("x.mlk")
        self.assertEqual(self.mleak("record", "-o", trace, "--", self.path("many")).status, 0)
        self.assertEqual(self.totals(trace)["given_back"], {"blocks": 6000, "bytes": 6000 * PAGE})
        self.assertIn("\n  not known: whether 1,904 ranges that madvise gave back are used again\n",
                      self.mleak("report", trace).out)

    def test_memory_that_is_reserved_does_not_pull_the_trigger(self):
        """What the sample has reserved is 1,009 pages, and nothing else is mapped or allocated."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "--trigger", str(500 * PAGE), "-o", trace, "--", self.sample("pages"),
                            stdin=subprocess.DEVNULL)
        self.assertEqual(result.status, 0, result.err)
        totals = self.totals(trace)
        self.assertEqual((totals["reserved"]["blocks"], totals["allocated"]["blocks"]), (0, 0))
        self.assertNotIn(" mmap ", self.mleak("script", trace).out)
        self.assertRegex(self.mleak("report", trace).out,
                         r"not recorded: threads until .* outstanding \(1 block, 0 bytes\)")

    def test_a_static_program(self):
        """Linked with libmleak-wrap.a, where that is what records it."""
        flags = subprocess.run([self.program, "--wrap-flags"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split() if hasattr(self, "preloaded") else []
        self.check_random(range(5, 7), "-static", *flags)


@needs_bpf
class AttachedPagesTest(PagesCase):
    def test_the_end_of_the_recording_is_looked_at(self):
        sample = self.spawn([self.sample("pages")], stdin=subprocess.PIPE)
        self.assertEqual(read_line(sample), "ready")
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-p", str(sample.pid), "-o", trace)
        # the first sample is taken when the probes are in
        wait_until(lambda: os.path.exists(trace) and "memory " in self.mleak("info", trace).out,
                   "a sample of memory")
        lines = [self.tell(sample) for _ in range(4)]
        os.kill(record.pid, signal.SIGINT)
        self.assertEqual(self.finish(record).status, 0)
        self.assert_pages(trace, lines[3])
        self.close(sample)

    def test_shared_memory_stays_until_it_is_removed(self):
        source = self.write("shared.c", SHARED.encode())
        subprocess.run(["gcc", "-O2", "-o", self.path("shared"), source], check=True)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "--", self.path("shared"))
        self.assertEqual((result.status, result.out), (0, "7 7 4\n"), result.err)
        totals = self.totals(trace)
        self.assertEqual((totals["outstanding"]["bytes"] // PAGE, totals["given_back"]["bytes"] // PAGE), (4, 3))

    def test_filters_by_size_leave_out_mappings_as_a_whole(self):
        for option, size, there in (("--min-size", 1009 * PAGE + 1, False), ("--min-size", 1009 * PAGE, True),
                                    ("--max-block", 1009 * PAGE - 1, False)):
            with self.subTest(option=option, size=size):
                trace = self.path("%d%s.mlk" % (size, option))
                result = self.mleak("record", option, str(size), "-o", trace, "--", self.sample("pages"),
                                    stdin=subprocess.DEVNULL)
                self.assertEqual(result.status, 0, result.err)
                totals = self.totals(trace)
                # it ends at once: what it uses again may be seen or not
                self.assertEqual((totals["reserved"]["bytes"] // PAGE,
                                  (totals["outstanding"]["bytes"] + totals["given_back"]["bytes"]) // PAGE),
                                 (798, 211) if there else (0, 0))
