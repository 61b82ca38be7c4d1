"""`mleak report --jobs`: several threads read a trace, and what is shown is the same to the byte."""

import os
import pty
import re
import subprocess
import sys
import time

from mleaktest import LONG, CHUNK_MAGIC, MLEAK_FAST, Case

EVENTS = 4  # the type of such chunks, doc/trace-format.md section 3

# Threads that allocate at once, in stacks of any depth: many are deeper than what is recorded.  What
# they do fills several chunks, however fast the machine.
PROGRAM = """
import threading
kept = []
def down(n, m):
    return down(n - 1, m) if n else [str(i) * (m + 9) for i in range(20)]
def work(m):
    for i in range(420):
        made = down((i * 7 + m) % 40, m)
        if i % 12 == m:
            kept.append(made)
threads = [threading.Thread(target=work, args=(m,)) for m in range(5)]
for t in threads: t.start()
for t in threads: t.join()
"""


class ReportJobsTest(Case):
    def trace_of(self, *options):
        trace = self.path("x.mlk")
        subprocess.run([MLEAK_FAST, "record", "--backend", "preload", *options, "-o", trace, "--",
                        os.path.realpath(sys.executable), "-c", PROGRAM], check=True,
                       env=dict(os.environ, PYTHONMALLOC="malloc"), stderr=subprocess.DEVNULL,
                       timeout=3 * LONG)
        with open(trace, "rb") as file:
            data = file.read()
        kinds = [data[m.start() + 12] for m in re.finditer(re.escape(CHUNK_MAGIC), data)]
        self.assertGreater(kinds.count(EVENTS), 3)
        return trace, data

    def same_with_any_number(self, trace, *args):
        one = self.mleak("report", "--jobs", "1", *args, trace)
        self.assertIn(one.status, (0, 1))
        self.assertTrue(one.out)
        for jobs in "2", "5":
            self.assertEqual(self.mleak("report", "-j", jobs, *args, trace), one)
        return one

    def test_cut_stacks_get_the_same_callers(self):
        """What lies above them is in chunks that other threads read."""
        trace, _ = self.trace_of("--stack-size", "1K")
        shown = self.same_with_any_number(trace, "--format=json")
        self.assertIn("bytes from another moment", shown.out)
        self.same_with_any_number(trace, "--format=heaptrack")

    def test_a_damaged_trace_is_told_of_the_same(self):
        trace, data = self.trace_of()
        starts = [m.start() for m in re.finditer(re.escape(CHUNK_MAGIC), data)]
        events = [at for at in starts if data[at + 12] == EVENTS]
        sizes = {at: end - at for at, end in zip(starts, starts[1:])}
        broken = bytearray(data)
        broken[max(events[:-1], key=sizes.get) + 200] ^= 0xff  # within a chunk: it is lost
        broken[events[-1]] ^= 0xff       # its beginning: it is not found
        with open(trace, "wb") as file:
            file.write(broken)
        shown = self.same_with_any_number(trace)
        self.assertIn("2 of its chunks are lost", shown.err)

    def test_how_far_it_is_shows_on_a_terminal_and_nowhere_else(self):
        trace, _ = self.trace_of()
        self.assertEqual(self.mleak("report", trace).err, "")
        for args, wanted in (["--no-pager"], True), (["--no-pager", "--quiet"], False):
            master, slave = pty.openpty()
            begun = time.monotonic()
            process = self.start_mleak("report", *args, trace, stderr=slave,
                                       stdout=subprocess.DEVNULL,
                                       env=dict(os.environ, TERM="xterm"))
            os.close(slave)
            seen, deadline = b"", time.monotonic() + 3 * LONG
            while time.monotonic() < deadline:
                try:
                    seen += os.read(master, 65536)
                except OSError:  # the other end was closed
                    break
            os.close(master)
            self.assertEqual(process.wait(timeout=LONG), 0)
            text = seen.decode()
            if not wanted:
                self.assertEqual(text, "")
            elif text or time.monotonic() - begun > 5:  # a quick one shows nothing
                self.assertRegex(text, r"\A(\rmleak: reading the trace: +\d+ %\x1b\[K)+\r\x1b\[K\Z")
