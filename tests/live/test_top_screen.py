"""`mleak top` on a terminal: what a person sees and types, by tmux."""

import fcntl
import os
import re
import signal
import time

from faulttest import FaultCase
from forevertest import Leaker
import forge
from kerneltest import OPEN, KernelCase
from mleaktest import MLEAK, Case, descendants, needs_bpf, number, state_of, wait_until
from screentest import ROW, Terminal
from toptest import next_table, table_with

def terminal_row_blocks(screen):
    """The blocks of the first row, as they are printed."""
    return next(found[3] for found in map(ROW.match, screen.splitlines()) if found)


@needs_bpf
class TopScreenTest(Case):
    def start_forever(self):
        process = self.spawn([self.sample("forever"), "1"])
        target = Leaker(process, process.pid)
        target.expect("ready")
        return target

    def leaked(self, terminal):
        return sum(number(row[3]) for row in terminal.rows() if row[7].startswith("leak_here < "))

    def test_what_is_seen_and_typed(self):
        target = self.start_forever()
        target.toggle("paused")
        before = target.count()
        terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid), "200ms", columns=140)
        terminal.wait(r"^mleak top  forever \(%d\)  [\d.]+ s  RSS [\d.]+ MiB  0 events lost$" % target.pid)
        for _ in range(2):
            target.toggle("running")
            wait_until(lambda: target.count().blocks > before.blocks + 10, "nothing is leaked")
            target.toggle("paused")
            truth = target.count().blocks - before.blocks
            wait_until(lambda: self.leaked(terminal) == truth, "not %d blocks" % truth)
        self.assertRegex(terminal.screen(), r"\u2588")
        terminal.type("Enter")
        seen = terminal.wait(r"^  serve_(readers|writers)  .*forever\.c:\d+$")
        self.assertRegex(seen, r"(?m)^  leak_here  .*forever\.c:\d+\n  handle_request  .*\n  serve  ")
        terminal.type("Enter")
        terminal.wait(r"leak_here < handle_request")
        terminal.type("/", "WRITERS")
        terminal.wait("^filter: WRITERS_")
        wait_until(lambda: len(terminal.rows()) == 1, "the filter shows more")
        self.assertIn("serve_writers", terminal.rows()[0][7])
        terminal.type("Enter")
        terminal.wait(r"^filter: WRITERS  \(Esc: all\)")
        terminal.type("Escape")
        wait_until(lambda: len(terminal.rows()) >= 2, "the filter is still there")
        terminal.type("t")
        seen = terminal.wait(r"^ *size\* +net/s +age +blocks +thread$")
        self.assertEqual(sum(number(found) for found in
                             re.findall(r" ([\d,]+)  forever \(%d/\d+\)" % target.pid, seen)), truth)
        terminal.type("p")
        seen = terminal.wait(r"^ *size\* +net/s +age +blocks +process$")
        self.assertRegex(seen, r"(?m)^ .* %s  forever \(%d\)$" % ("{:,}".format(truth), target.pid))
        terminal.type("p", "?")
        terminal.wait("stand still")
        terminal.type("?", "w")
        seen = terminal.wait(r"^wrote this table to 'mleak-top-\d+\.txt'; 'mleak top -o FILE' keeps the trace")
        with open(self.path(re.search(r"mleak-top-\d+\.txt", seen)[0])) as written:
            blocks = re.findall(r" bytes in ([\d,]+) allocations? from stack.*\n\t\tleak_here ", written.read())
        self.assertEqual(sum(map(number, blocks)), truth)
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)
        self.assertIn(state_of(target.pid), "SR")

    def test_sort_keys_and_pause(self):
        target = self.start_forever()
        terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid), "100ms")
        terminal.wait(r"^ +size\* .*\n.*leak_here")
        for key, title in (("n", "blocks"), ("r", "net/s"), ("a", "age"), ("b", "size")):
            terminal.type(key)
            seen = terminal.wait(r"\b%s\* .*\n.*leak_here" % title)
            # above its own column, and reversed
            head, row = re.search(r"(?m)^(.*stack)\n(.*)$", seen).groups()
            self.assertEqual(head.count("*"), 1)
            self.assertRegex(row[head.index("*")], r"\S")
            self.assertEqual(row[head.index("*") + 1], " ")
            self.assertRegex(terminal.tmux("capture-pane", "-e", "-p"), r"\x1b\[[\d;]*\b7m%s\*" % title)
        terminal.type("Space")
        still = terminal.wait_still(r"\[paused\]")
        before = target.count()
        wait_until(lambda: target.count().blocks > before.blocks + 500, "nothing is leaked")
        self.assertEqual(terminal.screen(), still)
        outstanding = [line for line in still.splitlines() if line.startswith("outstanding ")]
        held = sum(number(row[3]) for row in terminal.rows())
        self.assertEqual(len(outstanding), 1)
        for key, column in ("p", "process"), ("t", "thread"):
            terminal.type(key)
            seen = terminal.wait_still(r"^ *size\*? +net/s +age +blocks +%s$" % column)
            self.assertIn(outstanding[0], seen.splitlines())
            self.assertEqual(sum(number(found) for found in re.findall(r" ([\d,]+)  forever \(", seen)), held)
        for key in "n", "b":
            terminal.type(key)
        terminal.type("t")
        terminal.wait_same(still)
        terminal.type("Enter")
        self.assertIn(" in %s blocks outstanding; " % terminal_row_blocks(still), terminal.wait("outstanding; "))
        terminal.type("Escape")
        terminal.wait_same(still)
        terminal.type("Space")
        wait_until(lambda: terminal.screen().splitlines()[1:] != still, "it still stands still")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_narrow_screens(self):
        """A row is a line, cut at the edge, and tells which of the two leaks it is."""
        target = self.start_forever()
        for columns, heads in ((80, "size* net/s blocks freed age stack"), (60, "size* net/s blocks stack"),
                               (40, "size* blocks stack")):
            with self.subTest(columns=columns):
                terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid), "200ms", columns=columns)
                terminal.wait(r"readers.*\n(.*\n)*.*writers|writers.*\n(.*\n)*.*readers")
                terminal.type("Space")
                lines = terminal.wait(r"\[paused\]").splitlines()
                self.assertRegex(lines[0], r"forever \(%d\)  [\d.]+ s" % target.pid)
                self.assertRegex(lines[1], r"[\d,]+ blocks")
                self.assertEqual(lines[3].split(), heads.split())
                rows = [line for line in lines[4:-1] if line]
                for row in rows:
                    self.assertRegex(row, r"^ +[\d.,]+ \w+ .* [\d,]+ .*[a-z]")
                for name in "readers", "writers":
                    self.assertEqual(len([row for row in rows if name in row]), 1, rows)
                terminal.type("r")
                seen = terminal.wait(r"net/s\* ")
                self.assertNotIn("size*", seen)
                terminal.type("Enter")
                # a frame and its line are shown whole, if need be in two lines
                self.assertRegex(re.sub(r"\n +", " ", terminal.wait(r"leak_here")), r"leak_here +\S*forever\.c:\d+")
                terminal.type("q")
                self.assertEqual(terminal.status(), 0)

    def test_the_end_of_the_trace_ends_a_pause(self):
        target = self.start_forever()
        terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid), "100ms")
        terminal.wait(r"leak_here")
        terminal.type("Space")
        terminal.wait(r"\[paused\]")
        before = target.count()
        wait_until(lambda: target.count().blocks > before.blocks + 100, "nothing is leaked")
        os.kill(target.pid, signal.SIGTERM)
        seen = terminal.wait(r"\[ended\]")
        blocks = re.search(r"(?m)^outstanding .* in ([\d,]+) blocks", seen)[1]
        terminal.type("p")
        terminal.wait(r"^ .* %s  forever \(%d\)$" % (blocks, target.pid))
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_a_command_ends_with_the_screen(self):
        terminal = Terminal(self, MLEAK, "top", "-o", "kept.mlk", "--", self.sample("forever"), "1")
        terminal.wait("leak_here < ... < serve_")
        self.assertNotIn("ready", terminal.screen())
        pane = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
        forever = [pid for pid in descendants(pane) if state_of(pid) != "X" and
                   os.readlink("/proc/%d/exe" % pid) == self.path("forever")]
        terminal.type("w")
        terminal.wait(r"^wrote 'mleak-top-\d+\.mlk'")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)
        self.assertEqual([state_of(pid) for pid in forever], ["X"])
        terminal.wait("mleak: kept 'kept.mlk'")
        copy, = [name for name in os.listdir(self.dir) if name.startswith("mleak-top-")]
        for trace in copy, "kept.mlk":
            result = self.mleak("report", "--strict", "--folded", self.path(trace))
            self.assertEqual((result.status, result.err), (0, ""))
            self.assertIn("leak_here", result.out)
        self.assertRegex(self.mleak("info", self.path(copy)).out, r"(?m)^ended +it was copied while it was recorded$")

    def test_a_finished_trace(self):
        trace, _ = self.record(self.sample("single"))
        terminal = Terminal(self, MLEAK, "top", trace)
        terminal.wait(r"\[ended\]\noutstanding 1,081 bytes in 23 blocks from 1 stack")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_a_finished_trace_and_an_interval(self):
        trace, _ = self.record(self.sample("single"))
        terminal = Terminal(self, MLEAK, "top", trace, "1ms")
        seen = terminal.wait(r"\[ended\]\noutstanding 1,081 bytes in 23 blocks from 1 stack")
        self.assertNotIn("bytes outstanding", seen)
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_signals_end_it(self):
        target = self.start_forever()
        terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid))
        terminal.wait("leak_here")
        terminal.type("C-c")
        self.assertEqual(terminal.status(), 0)
        self.assertIn(state_of(target.pid), "SR")

    def test_what_the_recorder_says_is_seen_afterwards(self):
        terminal = Terminal(self, MLEAK, "top", "--", self.path("none"))
        self.assertEqual(terminal.status(), 127)
        terminal.wait(r"^mleak: cannot start .*none")

    def test_plain_on_request(self):
        trace, _ = self.record(self.sample("single"))
        terminal = Terminal(self, MLEAK, "top", "--plain", trace)
        terminal.wait(r"1,081 bytes in 23 blocks outstanding")
        self.assertEqual(terminal.status(), 0)


class TopOtherMachineTest(Case):
    def test_rss_is_that_of_the_trace(self):
        """A trace that is being written elsewhere: here the process with its number is this test."""
        trace = forge.Trace([forge.meta(tgid=os.getpid()), forge.events([(0x1000, 47)], tgid=os.getpid()),
                             forge.memory([(os.getpid(), forge.SECOND, {1: 7 << 20})])])
        with open(self.write("x.mlk", trace.bytes())) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            terminal = Terminal(self, MLEAK, "top", self.path("x.mlk"), "100ms")
            terminal.wait(r"^mleak top .*  RSS 7.00 MiB  0 events lost$")
            fcntl.flock(file, fcntl.LOCK_UN)
            terminal.wait(r"^mleak top .*  RSS 7.00 MiB  0 events lost  \[ended\]$")


# One child holds blocks until "go" is written to; then many come and go.
FORKER = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) void leak(int n) { void *p = malloc(n); __asm__ volatile("" :: "r"(p) : "memory"); }
int main(void)
{
	pid_t held = fork(), child;
	if (!held) {
		for (int k = 0; k < 77; k++)
			leak(4001);
		for (;;)
			pause();
	}
	leak(5);
	close(open("go", O_RDONLY));
	kill(held, SIGKILL);
	waitpid(held, NULL, 0);
	for (int i = 0; i < 300; i++) {
		child = fork();
		if (!child) {
			leak(47);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	close(open("forked", O_WRONLY | O_CREAT, 0600));
	for (;;)
		pause();
}
"""


@needs_bpf
class TopForksScreenTest(FaultCase):
    def test_what_stands_still_is_not_forgotten(self):
        self.compile("forker", source=FORKER)
        os.mkfifo(self.path("go"))
        terminal = Terminal(self, MLEAK, "top", "--follow", "-o", "kept.mlk", "--", self.path("forker"), "100ms")
        seen = terminal.wait(r" 77 .*  forker \(\d+\): leak < main")
        held = re.search(r"forker \((\d+)\): leak", seen)[1]
        terminal.type("Space")
        still = terminal.wait_still(r"\[paused\]")
        terminal.type("p")
        processes = terminal.wait_still(r" 77  forker \(%s\)$" % held)
        with open(self.path("go"), "w"):
            pass
        wait_until(lambda: os.path.exists(self.path("forked")), "the children do not end")
        wait_until(lambda: self.mleak("script", self.path("kept.mlk")).out.count(" exit") > 300, "not all is recorded")
        time.sleep(1)  # so that it is taken in: what should not happen has its time
        terminal.type("?", "p")
        terminal.wait_same(processes)
        terminal.type("p")
        terminal.wait_same(still)
        terminal.type("Enter")
        terminal.wait(r" in 77 blocks outstanding; 77 allocated, 0 freed")
        terminal.type("Escape", "Space")
        terminal.wait(r"^mleak top  302 processes ")
        terminal.type("q")
        self.assertEqual(terminal.status(), 128 + signal.SIGTERM)


class TopKernelScreenTest(KernelCase):
    def test_tables_of_caches_and_control_groups(self):
        for key, title, row in ("cache", "cache", r"(?m)^ .* %d  filp$" % OPEN), \
                               ("cgroup", "control group", r"(?m)^ .* [\d,]{4,}  \S+$"):
            top = self.start_mleak("top", "--kernel", "--events", "--comm", self.comm, "--by", key, "200ms")
            next_table(top)  # it has begun
            self.tell("make")
            table = table_with(top, lambda table, row=row: re.search(row, table.text), "no %s" % key)
            self.assertRegex(table.text, r"(?m)^ +bytes +blocks  %s$" % title)
            self.tell("close")
            top.send_signal(signal.SIGINT)
            self.assertEqual(self.finish(top).status, 0)

    def test_caches_and_control_groups(self):
        terminal = Terminal(self, MLEAK, "top", "--kernel", "--events", "--comm", self.comm, "200ms")
        terminal.wait(r"^mleak top  the kernel  ")
        wait_until(lambda: "[attaching]" not in terminal.screen(), "nothing is recorded")
        self.tell("make")
        terminal.type("c")
        terminal.wait(r"^ *size\* +net/s +age +blocks +cache$")
        terminal.wait(r"^ .* %d  filp$" % OPEN)
        terminal.type("g")
        seen = terminal.wait(r"^ *size\* +net/s +age +blocks +control group$")
        # all of it is of one process
        all_of_it = re.search(r"(?m)^outstanding .* in ([\d,]+) blocks", seen)[1]
        self.assertRegex(seen, r"(?m)^ .* %s  \S" % all_of_it)
        terminal.type("p")
        terminal.wait(r"^ .*  %s \(%d\)$" % (self.comm, self.target.pid))
        self.assertEqual(terminal.screen().count("(%d)" % self.target.pid), 1)
        self.tell("close")
        terminal.type("c")
        wait_until(lambda: not re.search(r"(?m) %d  filp$" % OPEN, terminal.screen()), "they are not freed")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)
