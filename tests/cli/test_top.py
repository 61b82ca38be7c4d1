"""`mleak top`: its command line, and traces that are damaged, cut or of a sample."""

import fcntl
import os
import re
import subprocess

import forge
from mleaktest import Case, chunk_starts
from toptest import next_table, parse_tables

CALLS = [(0x1000, 47), (0x2000, 53), (0x3000, 59), (0x2000,)]


class TopTest(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.write("x.mlk", forge.small(CALLS).bytes())

    def assert_refused(self, *args, naming):
        result = self.mleak("top", *args)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming=naming)

    def test_sums(self):
        table, = parse_tables(self.mleak("top", self.trace).out)
        self.assertEqual(table.outstanding, (2, 47 + 59))
        self.assertEqual((table.allocated, table.freed, table.lost), (3, 1, 0))

    def test_command_lines_that_make_no_sense(self):
        self.assert_refused(naming="name a trace")
        self.assert_refused("--", naming="name a trace")
        self.assert_refused(self.trace, "0", naming=": INTERVAL wants a time")
        self.assert_refused(self.trace, "soon", naming=": INTERVAL wants a time")
        self.assert_refused(self.trace, "1", "0", naming=": COUNT wants a number from 1,")
        for name in "x%y", "x%", "%n.mlk":
            self.assert_refused("-o", name, "-p", "1", naming="'%s'" % name)
        self.assert_refused("-o", "%p.mlk", "--kernel", naming="'%p.mlk'")
        self.assert_refused(self.trace, "1", "2", "3", naming="'3'")
        self.assert_refused("--sample=10", self.trace, naming="--sample")
        self.assert_refused("-o", "y.mlk", self.trace, naming="--output")
        self.assert_refused("-C", "-a", self.trace, naming="--show-allocs")
        self.assert_refused("--by=cache", self.trace, naming="only the kernel's memory")
        self.assert_refused("--by=cgroup", "--", "true", naming="only the kernel's memory")
        self.assert_refused("--by=process", "-a", self.trace, naming="--show-allocs")
        self.assert_refused("--by=name", self.trace, naming="process, thread, cache or cgroup")
        self.assert_refused("-t", "--flat", self.trace, naming="--trace")
        self.assert_refused("-t", self.trace, "5", naming="--trace")
        self.assert_refused("--sort=name", self.trace, naming="bytes, blocks, rate or age")
        self.assert_refused("--nonsense", self.trace, naming="nonsense")
        self.assert_refused(self.path("none.mlk"), naming="none.mlk")
        self.assert_refused(self.write("text", b"hello"), naming="not a mleak trace")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = self.finish(self.start_mleak("top", self.trace, stdout=full))
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, naming="No space left on device")

    def test_a_damaged_chunk_is_told(self):
        trace = bytearray(forge.small(CALLS).bytes())
        events = next(at for at in chunk_starts(trace) if trace[at + 12] == 4)
        trace[events + 97] ^= 1
        table, = parse_tables(self.mleak("top", self.write("y.mlk", bytes(trace))).out)
        self.assertIn("1 chunk of the trace damaged", table.text)
        self.assertEqual(table.allocated, 0)

    def test_a_trace_that_is_cut_is_told_as_a_report_tells_it(self):
        with open(self.trace, "rb") as file:
            whole = file.read()
        cut = self.write("cut.mlk", whole[:-7])
        ends = self.mleak("report", cut).err
        self.assertIn("'%s' has no end: " % cut, ends)
        for args in (cut,), (cut, "1"), ("-t", cut):
            with self.subTest(args=args):
                result = self.mleak("top", "--plain", *args)
                self.assertEqual((result.status, result.err), (0, ends))
        with subprocess.Popen(["cat", cut], stdout=subprocess.PIPE) as cat:
            result = self.finish(self.start_mleak("top", "--plain", "-", stdin=cat.stdout))
        self.assertEqual((result.status, result.err), (0, ends.replace(cut, "-")))
        # who has seen enough knows nothing of the end
        result = self.mleak("top", "--plain", self.trace, "1", "1")
        self.assertEqual((result.status, result.err), (0, ""))

    def test_a_trace_that_is_cut_and_then_goes_on(self):
        """Whoever holds the lock writes; the rest comes in pieces of which none is a whole chunk."""
        whole = forge.small(CALLS).bytes()
        path = self.write("y.mlk", whole[:400])
        with open(path, "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            top = self.start_mleak("top", path, "20ms")
            for at in range(400, len(whole), 50):
                file.write(whole[at:at + 50])
                next_table(top)
            fcntl.flock(file, fcntl.LOCK_UN)
        result = self.finish(top)
        self.assertEqual((result.status, result.err), (0, ""))
        tables = parse_tables(result.out)
        if tables:  # else the last one said it
            self.assertEqual(tables[-1].outstanding, (2, 47 + 59))
            self.assertNotIn("damaged", tables[-1].text)

    def rss_of(self, *args):
        tables = parse_tables(self.mleak("top", *args).out)
        return [table.text.partition("; RSS ")[2].partition("\n")[0] for table in tables]

    def test_rss_is_that_of_the_trace(self):
        """On this machine the process with that number is this test."""
        samples = [(os.getpid(), forge.SECOND + 500, {1: 12345}), (os.getpid(), forge.SECOND + 1500, {1: 234567})]
        trace = forge.Trace([forge.meta(tgid=os.getpid()), forge.events(CALLS, tgid=os.getpid()),
                             forge.memory(samples), forge.end(1, 2 * forge.SECOND)])
        path = self.write("y.mlk", trace.bytes())
        self.assertEqual(self.rss_of(path), ["234,567 bytes"])
        self.assertEqual(self.rss_of(path, "1us")[:2], ["12,345 bytes", "234,567 bytes"])
        self.assertEqual(self.rss_of(self.trace), [""])

    def test_rss_is_the_sum_of_the_processes(self):
        samples = [(7, forge.SECOND, {1: 1000}), (8, forge.SECOND, {1: 200}), (0, forge.SECOND, {11: 1 << 30})]
        path = self.write("y.mlk", forge.small(CALLS, more=[forge.memory(samples)]).bytes())
        self.assertEqual(self.rss_of(path), ["1,200 bytes"])

    def test_by(self):
        threads = [forge.events([(0x1000, 47), (0x2000, 53)], tid=7),
                   forge.events([(0x3000, 100)], forge.SECOND * 2, tid=8)]
        trace = forge.Trace([forge.meta(), *threads, forge.end(1, 3 * forge.SECOND)])
        path = self.write("y.mlk", trace.bytes())
        for key, rows in ("thread", [("100", "2", "thread (7/7)"), ("100", "1", "thread (7/8)")]), \
                         ("process", [("200", "3", "process (7)")]):
            text = self.mleak("top", "--by", key, path).out
            self.assertRegex(text, r"(?m)^ +bytes +blocks  %s$" % key)
            self.assertEqual(re.findall(r"(?m)^ +(\d+) +(\d+)  (.* \(.*\))$", text), rows)
            self.assertEqual(text.count("\n"), 4 + len(rows))
        self.assertEqual(len(re.findall(r"thread \(", self.mleak("top", "--by=thread", "-n1", path).out)), 1)

    def test_sort(self):
        for key in "bytes", "blocks", "rate", "age":
            self.assertEqual(self.mleak("top", "--sort", key, self.trace).status, 0)
        self.assertEqual(os.listdir(self.dir).count("x.mlk"), 1)
