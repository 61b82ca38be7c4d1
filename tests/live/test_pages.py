"""What of mappings is in use, reserved or given back is what the kernel says of them."""

import json
import os
import re
import signal
import subprocess

from backends import both_backends
from mleaktest import MLEAK_FAST, Case, needs_bpf, parse_totals, read_line, wait_until

PAGE = 4096


class PagesCase(Case):
    def totals(self, trace):
        return json.loads(self.mleak("report", "--format=json", trace).out)["totals"]

    def assert_pages(self, trace, line):
        """The sums of @trace are those of the sample's @line."""
        told = {name: int(pages) * PAGE for name, pages in re.findall(r"(\w+)=(\d+)", line)}
        totals = self.totals(trace)
        self.assertEqual({"in_use": totals["outstanding"]["bytes"],
                          "reserved": totals["reserved"]["bytes"],
                          "given_back": totals["given_back"]["bytes"]}, told)
        # nothing else is freed here, and nothing is gone
        self.assertEqual(totals["allocated"]["bytes"] - totals["freed"]["bytes"], told["in_use"])

    def tell(self, process, line=b"\n"):
        process.stdin.write(line)
        return read_line(process)


@both_backends
class PagesTest(PagesCase):
    program = MLEAK_FAST

    def test_each_step_is_seen(self):
        """Recorded from its start.  What is used again is seen within about a second."""
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", self.sample("pages"), stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        lines = [self.tell(record) for _ in range(4)]
        self.assertEqual(lines[2], "pages: in_use=158 reserved=798 given_back=53")
        wait_until(lambda: " resident " in self.mleak("script", trace).out, "pages that are used again")
        record.stdin.close()
        record.stdin = None
        self.assertEqual(self.finish(record).status, 0)
        self.assert_pages(trace, lines[3])
        events = re.findall(r" (\S+) (\d+) 0x[0-9a-f]+( reserved)?$", self.mleak("script", trace).out, re.M)
        self.assertEqual([(name, int(size) // PAGE, bool(reserved)) for name, size, reserved in events],
                         [("mmap", 1009, True), ("accessible", 211, False), ("given-back", 53, False),
                          ("resident", 17, False)])
        head = self.mleak("report", "--bytes", trace).out
        self.assertRegex(head, r"\n  reserved +2 ranges +3,268,608 bytes  \(PROT_NONE: needs no memory\)\n")
        self.assertRegex(head, r"\n  given back +2 ranges +147,456 bytes  \(by madvise: needs no memory\)\n")
        facts = self.mleak("info", trace).out
        self.assertRegex(facts, r"(?m)^page events +3$")

    def test_what_is_dropped_or_read_otherwise_is_the_same(self):
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", self.sample("pages"), stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        lines = [self.tell(record) for _ in range(3)]
        record.stdin.close()
        record.stdin = None
        self.assertEqual(self.finish(record).status, 0)
        for name, options in (("unwound.mlk", []), ("dropped.mlk", ["--drop-raw"])):
            self.assertEqual(self.mleak("unwind", *options, "-o", self.path(name), trace).status, 0)
            self.assert_pages(self.path(name), lines[2])


@needs_bpf
class AttachedPagesTest(PagesCase):
    program = MLEAK_FAST

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
        sample.stdin.close()
        sample.stdin = None
        self.assertEqual(self.finish(sample).status, 0)

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
