"""`mleak top -p PID` and `mleak top -- COMMAND`: recorder and tables in one, held against what the
target counts itself."""

import os
import pty
import re
import signal
import socket
import subprocess

from backends import both_backends
from faulttest import FaultCase
from forevertest import Leaker
from mleaktest import LONG, Case, MLEAK, Sum, descendants, needs_bpf, parse_answers, state_of, wait_until
from toptest import amount_of, next_table, parse_tables, table_with

FORKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) void leak(void) { void *p = malloc(47); __asm__ volatile("" :: "r"(p) : "memory"); }
int main(void)
{
	char line[40];
	for (int round = 0; fgets(line, sizeof(line), stdin); round++) {
		for (int i = atoi(line); i > 0; i--) {
			pid_t child = fork();
			if (!child) {
				for (int k = 0; k < 500; k++)
					leak();
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
	}
	return 0;
}
"""


# Executes itself as often as it is told, with a new layout each time.
EXECS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char line[40] = "";
	int left = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < 20; i++) {
		void *volatile p = malloc(100 + i);
		(void)p;
	}
	if (!left && !fgets(line, sizeof(line), stdin))
		return 0;
	sprintf(line, "%d", left ? left - 1 : atoi(line) - 1);
	execl("/proc/self/exe", argv[0], line, NULL);
	return 1;
}
"""


@needs_bpf
class TopForksTest(FaultCase):
    def resident_kib(self, pid):
        with open("/proc/%d/status" % pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def test_a_server_that_forks_takes_no_more_memory_by_and_by(self):
        """Blocks of 47 bytes, 500 of each child, take 40 KiB each: 1,500 children would be 60 MiB."""
        self.compile("forker", source=FORKER)
        top = self.start_mleak("top", "--follow", "50ms", "--", self.path("forker"), stdin=subprocess.PIPE)
        begun, resident = 1, []
        for children in 300, 1500:
            top.stdin.write(b"%d\n" % children)
            begun += children
            table = table_with(top, lambda table: table.of == "{:,} processes".format(begun), "not %d" % begun)
            resident.append(self.resident_kib(top.pid))
            self.assertGreater(table.outstanding.blocks, 64 * 500 - 1)
            self.assertLess(table.outstanding.blocks, 128 * 500 + 99)
            self.assertEqual(table.lost, 0)
        self.assertLess(resident[1] - resident[0], 12 * 1024)
        top.stdin.close()
        top.stdin = None
        self.assertEqual(self.finish(top).status, 0)

    def test_a_program_that_executes_others_takes_no_more_memory_by_and_by(self):
        """Each layout took 5 KiB, 10 MiB together; what waits to be taken in may take some."""
        self.compile("execs", source=EXECS)
        top = self.start_mleak("top", "--follow", "50ms", "--", self.path("execs"), stdin=subprocess.PIPE)
        programs, resident = 1, []
        for execs in 700, 2000:
            top.stdin.write(b"%d\n" % execs)
            programs += execs
            table_with(top, lambda table: table.allocated >= 20 * programs, "not %d" % programs)
            resident.append(self.resident_kib(top.pid))
        self.assertLess(resident[1] - resident[0], 6 * 1024)
        top.stdin.close()
        top.stdin = None
        self.assertEqual(self.finish(top).status, 0)


@needs_bpf
class TopProcessTest(Case):
    def start(self, *args):
        """The sample forever, paused, and mleak top on it, whose first table has been read."""
        process = self.spawn([self.sample("forever"), "1"])
        target = Leaker(process, process.pid)
        target.expect("ready")
        target.toggle("paused")
        top = self.start_mleak("top", *args, "-p", str(process.pid), "100ms")
        next_table(top)
        return target, top

    def test_what_the_target_counts(self):
        target, top = self.start()
        before = target.count()
        for _ in range(3):
            target.toggle("running")
            target.toggle("paused")
            now = target.count()
            truth = Sum(now.blocks - before.blocks, now.bytes - before.bytes)
            table_with(top, lambda table: amount_of(table, "leak_here") == truth, "not %s" % (truth,))
        os.kill(target.pid, signal.SIGTERM)
        result = self.finish(top)
        self.assertEqual((result.status, result.err), (0, ""))

    def test_an_interrupt_ends_it_and_not_the_target(self):
        target, top = self.start("-o", self.path("kept.mlk"))
        before = target.count()
        target.toggle("running")
        target.toggle("paused")
        now = target.count()
        truth = Sum(now.blocks - before.blocks, now.bytes - before.bytes)
        table_with(top, lambda table: amount_of(table, "leak_here") == truth, "not %s" % (truth,))
        top.send_signal(signal.SIGINT)
        result = self.finish(top)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="mleak report " + self.path("kept.mlk"))
        self.assertIn(state_of(target.pid), "SR")
        self.assertEqual(self.mleak("report", "--strict", self.path("kept.mlk")).status, 0)
        table, = parse_tables(self.mleak("top", "-n", "99", self.path("kept.mlk")).out)
        self.assertEqual(amount_of(table, "leak_here"), truth)

    def test_each_table_has_rss(self):
        process = self.spawn([self.sample("forever"), "1"])
        Leaker(process, process.pid).expect("ready")
        tables = parse_tables(self.mleak("top", "-p", str(process.pid), "2", "2").out)
        self.assertEqual(len(tables), 2)
        for table in tables:
            self.assertRegex(table.text.splitlines()[1], r"; RSS [\d,]+ bytes$")

    def test_so_many_tables(self):
        process = self.spawn([self.sample("forever"), "1"])
        Leaker(process, process.pid).expect("ready")
        result = self.mleak("top", "-p", str(process.pid), "50ms", "3")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(len(parse_tables(result.out)), 3)
        self.assertEqual(os.listdir(self.dir).count("mleak.mlk"), 0)

    def test_a_reader_that_has_enough(self):
        target, top = self.start()
        target.toggle("running")
        top.stdout.close()
        top.stdout = None
        self.assertEqual(top.wait(LONG), 0)
        self.assertEqual(top.stderr.read().decode(), "")
        self.assertIn(state_of(target.pid), "SR")

    def test_a_process_that_does_not_exist(self):
        with open("/proc/sys/kernel/pid_max") as most:
            result = self.mleak("top", "-p", str(int(most.read()) - 1))
        self.assertEqual((result.status, result.out), (125, ""))
        self.assert_one_message(result.err, naming="no process")


@both_backends
class TopCommandTest(Case):
    def top(self, *args, status=0):
        options = ["--backend=preload"] if self.preloaded else []
        result = self.mleak("top", *options, *args)
        self.assertEqual(result.status, status, result.err)
        return result

    def test_the_sums_are_the_samples(self):
        result = self.top("--", self.sample("single"))
        self.assertEqual(result.err, "")
        out = result.out.splitlines(keepends=True)
        answer, = parse_answers(result.out)
        table = parse_tables("".join(line for line in out if not line.startswith("answer")))[-1]
        self.assertEqual(table.outstanding, Sum(answer.blocks, answer.bytes))
        self.assertEqual(table.rows[0].functions[:3], answer.path[::-1])

    def test_the_trace_that_is_kept_is_that_of_the_recorder(self):
        result = self.top("-o", self.path("kept.mlk"), "--", self.sample("single"))
        self.assertIn("now run: mleak report", result.err)
        self.assertEqual(self.mleak("report", "--strict", self.path("kept.mlk")).status, 0)
        self.assertIn("main;work;leak_here 1081\n",
                      self.mleak("report", "--folded", self.path("kept.mlk")).out.replace("_start;", "")
                      .replace("__libc_start_main;", "").replace("__libc_start_call_main;", ""))

    def test_the_name_of_the_kept_trace(self):
        """As that of record: the process, the host and the time are in it."""
        result = self.top("-o", "%h-%p-%%.mlk", "--", "sh", "-c", "echo pid $$")
        name = "%s-%s-%%.mlk" % (socket.gethostname(), re.search(r"(?m)^pid (\d+)$", result.out)[1])
        self.assertIn("now run: mleak report " + name, result.err)
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".mlk")], [name])
        self.assertEqual(self.mleak("report", "--strict", self.path(name)).status, 0)

    def test_the_status_is_the_commands(self):
        self.top("--", "sh", "-c", "exit 42", status=42)
        self.top("--", "sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
        result = self.top("--", self.path("none"), status=127)
        self.assertEqual(result.out, "")
        self.assert_one_message(result.err, naming="none")

    def test_after_the_tables_the_command_goes_on(self):
        result = self.top("20ms", "2", "--", "sh", "-c", "sleep 1; echo done >end; exit 7",
                          status=7)
        self.assertEqual(len(parse_tables(result.out)), 2)
        self.assertTrue(os.path.exists(self.path("end")))
        self.assert_one_message(result.err, naming="still runs: mleak waits for its end")
        result = self.top("--quiet", "20ms", "2", "--", "sleep", "1")
        self.assertEqual((len(parse_tables(result.out)), result.err), (2, ""))

    def test_tables_come_while_the_command_runs(self):
        """Not when it ends: the command waits for two of them."""
        options = ["--backend=preload"] if self.preloaded else []
        top = self.start_mleak("top", *options, "50ms", "3", "--", "cat", stdin=subprocess.PIPE)
        for _ in range(2):
            next_table(top)
        self.assertEqual(self.finish(top).status, 0)  # which closes the command's stdin

    def test_sigterm_is_passed_on_to_the_command(self):
        options = ["--backend=preload"] if self.preloaded else []
        top = self.start_mleak("top", *options, "50ms", "--", "sleep", "600")
        next_table(top)
        sleeper = wait_until(lambda: [pid for pid in descendants(top.pid)
                                      if open("/proc/%d/comm" % pid).read() == "sleep\n"], "no sleep")
        top.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(top).status, -signal.SIGTERM)
        self.assertEqual(state_of(sleeper[0]), "X")

    def test_an_interrupt_from_the_keyboard_ends_all(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        options = ["--backend=preload"] if self.preloaded else []
        top = self.spawn(["setsid", "-c", "-w", MLEAK, "top", *options, "50ms", "--", "sleep", "600"],
                         stdin=slave, stderr=slave, stdout=subprocess.PIPE)
        os.close(slave)
        next_table(top)
        wait_until(lambda: [pid for pid in descendants(top.pid)
                            if open("/proc/%d/comm" % pid).read() == "sleep\n"], "no sleep")
        os.write(master, b"\x03")
        self.assertIn(self.finish(top).status, (-signal.SIGINT, 128 + signal.SIGINT))

    def test_where_the_trace_cannot_be_kept_nothing_runs(self):
        result = self.top("-o", self.path("no/folder.mlk"), "--", "touch", self.path("ran"), status=125)
        self.assert_one_message(result.err, naming="folder.mlk")
        result = self.top("-o", self.path("no/%p.mlk"), "--", "touch", self.path("ran"), status=125)
        self.assert_one_message(result.err, naming="no/%p.mlk")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_processes_have_their_names(self):
        result = self.top("--follow", "--", "sh", "-c", "ls . >/dev/null; ls . >/dev/null; true")
        table = parse_tables(result.out)[-1]
        self.assertIn(" processes", table.of)
        self.assertRegex(table.text, r"ls \(\d+\): ")
