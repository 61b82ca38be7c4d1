"""Several processes in one recording: children by fork, vfork, posix_spawn and exec, and several -p.

Each process of the sample below counts its own calls; that is the truth."""

import os
import re
import signal
import unittest

from mleaktest import (MLEAK_FAST, Case, hold, needs_bpf, parse_folded, parse_totals, read_line,
                       state_of, wait_until)

FAMILY = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
extern char **environ;
static unsigned long allocs, frees, inherited, bytes;
static void *kept[16], *given[1000];
FRAME void *leak_here(size_t size)
{
	void *block = malloc(size);
	allocs++;
	bytes += size;
	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
FRAME void noise(size_t size)
{
	void *block = malloc(size);
	allocs++;
	__asm__ volatile("" : : "r"(block) : "memory");
	free(block);
	frees++;
}
static void say(const char *who)
{
	char line[200];
	int len = snprintf(line, sizeof(line),
			   "truth: who=%s pid=%d allocs=%lu frees=%lu inherited=%lu bytes=%lu\n", who,
			   (int)getpid(), allocs, frees, inherited, bytes);
	if (write(1, line, len) != len)
		_exit(9);
}
static void work(int n)
{
	for (int i = 0; i < n; i++) {
		given[i] = leak_here(101 + i);
		noise(57);
	}
}
/* What a child does first of all: free its parent's blocks, and allocate. */
static void begin_child(int n)
{
	allocs = frees = inherited = bytes = 0;
	for (int i = 0; i < 16; i++) {
		free(kept[i]);
		inherited++;
	}
	work(n);
}
static void child(char **argv, char kind)
{
	pid_t pid;
	switch (kind) {
	case 'f':
		begin_child(23);
		say("forked");
		_exit(0);
	case 'n': /* a child of its own, which outlives it */
		begin_child(7);
		pid = fork();
		if (!pid) {
			allocs = frees = inherited = bytes = 0;
			usleep(300000);
			work(11);
			say("grandchild");
			_exit(0);
		}
		say("between");
		_exit(0);
	case 'e': /* allocates, and then begins another program */
		begin_child(5);
		say("before-exec");
		execl(argv[0], argv[0], "leaf", "13", NULL);
		_exit(9);
	}
	_exit(9);
}
static void *fork_in_thread(void *argv)
{
	pid_t pid = fork();
	if (!pid)
		child(argv, 'f');
	waitpid(pid, NULL, 0);
	return NULL;
}
static int only_exits(void *unused)
{
	(void)unused;
	_exit(0);
}
static void start(char **argv, char kind)
{
	static char stack[65536];
	char *const leaf[] = {argv[0], "leaf", "17", NULL};
	pthread_t thread;
	pid_t pid = 0;
	if (kind == 'v') {
		pid = vfork();
		if (!pid) {
			execv(argv[0], leaf);
			_exit(9);
		}
	} else if (kind == 's') {
		if (posix_spawn(&pid, argv[0], NULL, NULL, leaf, environ))
			_exit(9);
	} else if (kind == 't') {
		pthread_create(&thread, NULL, fork_in_thread, argv);
		pthread_join(thread, NULL);
		allocs++; /* glibc's thread: its dtv */
		return;
	} else if (kind == 'c') {
		pid = clone(only_exits, stack + sizeof(stack), SIGCHLD, NULL);
	} else {
		pid = fork();
		if (!pid)
			child(argv, kind);
	}
	if (kind != 'n')
		waitpid(pid, NULL, 0);
}
int main(int argc, char **argv)
{
	char byte;
	if (argc > 2 && !strcmp(argv[1], "leaf")) {
		work(atoi(argv[2]));
		say("leaf");
		return 0;
	}
	if (argc > 2 && !strcmp(argv[2], "wait")) {
		if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
			return 9;
	}
	for (int i = 0; i < 16; i++)
		kept[i] = leak_here(1009);
	for (const char *kind = argv[1]; *kind; kind++)
		start(argv, *kind);
	if (argc > 2) {
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
	say("first");
	return 0;
}
"""


# Allocates under frames larger than what is always kept of a stack, and then executes its arguments.
DEEP = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
FRAME void *leaf(void) { return malloc(47); }
FRAME void *mid(int n)
{
	char room[700];
	memset(room, n, sizeof(room));
	void *block = leaf();
	__asm__ volatile("" : : "r"(room) : "memory");
	return block;
}
FRAME void *outer(int n)
{
	char room[900];
	memset(room, n, sizeof(room));
	void *block = mid(n);
	__asm__ volatile("" : : "r"(room) : "memory");
	return block;
}
int main(int argc, char **argv)
{
	char line[20];
	sigset_t set;
	int sig;
	(void)argc;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (write(1, line, snprintf(line, sizeof(line), "%d\n", (int)getpid())) < 0)
		return 9;
	sigwait(&set, &sig);
	for (int i = 0; i < 50; i++)
		outer(i);
	execv(argv[1], argv + 1);
	return 9;
}
"""


def truths(text):
    """The `truth:` lines, as dictionaries."""
    found = []
    for line in re.findall(r"^truth: (.*)$", text, re.M):
        words = dict(word.split("=") for word in line.split())
        found.append({k: v if k == "who" else int(v) for k, v in words.items()})
    return found


class FamilyCase(Case):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        self.family = self.compile("family", FAMILY, "-pthread")

    def compile(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        built = self.finish(self.spawn(["gcc", "-O2", "-g", "-o", name, name + ".c", *flags]))
        self.assertTrue(os.path.exists(self.path(name)), built.err)
        return self.path(name)

    def leaked(self, trace, pid):
        """Bytes outstanding by leak_here() in process @pid."""
        stacks = parse_folded(self.report(trace, "--folded", "--pid", str(pid)))
        return sum(s.bytes for s in stacks if "leak_here" in s.frames)

    def inherited(self, text):
        found = re.search(r"^  inherited +([\d,]+) ", text, re.M)
        return int(found[1].replace(",", "")) if found else 0

    def assert_process(self, trace, truth):
        """What @trace says of a process that lived under recording from its first instruction."""
        text = self.report(trace, "--pid", str(truth["pid"]))
        totals = parse_totals(text)
        self.assertEqual(totals.allocations.blocks, truth["allocs"], text)
        self.assertEqual(totals.frees.blocks, truth["frees"], text)
        self.assertEqual(self.inherited(text), truth["inherited"], text)
        self.assertNotIn("unknown frees", text)
        self.assertNotIn("implied frees", text)
        self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"], text)

    def assert_sums(self, trace):
        """The processes' lines add up to the totals, and the tree to what is outstanding."""
        text = self.report(trace, "--per-process")
        totals = parse_totals(text)
        lines = re.findall(r"^  process (\d+) .*: ([\d,]+) allocations?, ([\d,]+) frees?, ([\d,]+) "
                           r"blocks? with ([\d,]+) bytes outstanding", text, re.M)
        sums = [sum(int(line[i].replace(",", "")) for line in lines) for i in range(1, 5)]
        self.assertEqual(sums, [totals.allocations.blocks, totals.frees.blocks,
                                totals.outstanding.blocks, totals.outstanding.bytes], text)
        stacks = parse_folded(self.report(trace, "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks), totals.outstanding.bytes)
        return text


@needs_bpf
class CommandFamilyTest(FamilyCase):
    """Children of a command are held before their first instruction: nothing of them is missed."""

    def follow(self, *argv):
        trace, out = self.record(*argv, options=("--follow",))
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        return trace, truths(out)

    def test_each_kind_of_child_is_counted_exactly(self):
        for kinds in ("f", "v", "s", "n", "t", "c", "fvsntcf"):
            with self.subTest(kinds=kinds):
                trace, said = self.follow(self.family, kinds, "all")
                self.assertEqual({t["who"] for t in said} >= {"first"}, True)
                for truth in said:
                    self.assert_process(trace, truth)
                self.assert_sums(trace)

    def test_child_that_allocates_before_its_exec(self):
        trace, said = self.follow(self.family, "e", "all")
        before, leaf = said[0], said[1]
        self.assertEqual((before["who"], leaf["who"]), ("before-exec", "leaf"))
        text = self.report(trace, "--pid", str(leaf["pid"]))
        totals = parse_totals(text)
        self.assertEqual(totals.allocations.blocks, before["allocs"] + leaf["allocs"])
        self.assertEqual(totals.frees.blocks, before["frees"] + leaf["frees"])
        self.assertEqual(self.leaked(trace, leaf["pid"]), leaf["bytes"])
        self.assertRegex(text, r"gone at exec +%d blocks" % (before["allocs"] - before["frees"]))
        self.assertEqual(self.inherited(text), 16)

    def test_fifty_short_children(self):
        trace, said = self.follow(self.family, "f" * 50, "all")
        self.assertEqual(len(said), 51)
        for truth in said[:3] + said[-3:]:
            self.assert_process(trace, truth)
        text = self.assert_sums(trace)
        self.assertEqual(parse_totals(text).allocations.blocks, sum(t["allocs"] for t in said))
        self.assertEqual(self.inherited(text), 50 * 16)

    def test_pipeline_of_a_shell(self):
        trace, said = self.follow(
            "sh", "-c", "%s leaf 29 | cat; %s leaf 31 & %s leaf 37; wait" % ((self.family,) * 3))
        self.assertEqual(sorted(t["allocs"] for t in said), [58, 62, 74])
        for truth in said:
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])
        self.assert_sums(trace)

    def test_statically_linked_program_started_by_a_shell(self):
        static = self.compile("static", FAMILY, "-static", "-pthread")
        trace, said = self.follow("sh", "-c", "%s leaf 41; %s leaf 43" % (static, self.family))
        for truth in said:
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])

    def test_without_follow_children_are_counted(self):
        result = self.mleak("record", "-o", "x.mlk", "--", self.family, "fffv", "all")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("4 child processes were started and not recorded; --follow records them",
                      result.err)
        first = truths(result.out)[-1]
        text = self.report(self.path("x.mlk"), "--per-process")
        totals = parse_totals(text)
        self.assertIn("  not recorded: 4 child processes (mleak record --follow)\n", text)
        self.assertEqual(totals.allocations.blocks, first["allocs"])
        self.assertEqual(totals.outstanding.bytes, first["bytes"])
        self.assertNotIn("process %d" % first["pid"], self.report(self.path("x.mlk"), "--per-process"))

    def test_no_child_no_word_of_children(self):
        result = self.mleak("record", "-o", "x.mlk", "--follow", "--", self.family, "", "all")
        self.assertEqual(result.status, 0)
        self.assertNotIn("child", result.err)

    def test_names_of_processes_are_roots_of_the_tree(self):
        trace, said = self.follow("sh", "-c", "%s leaf 3; true" % self.family)
        leaf = [t for t in said if t["who"] == "leaf"][0]
        text = self.report(trace, "--per-process")
        self.assertRegex(text, r"(?m)^ +[\d,]+ +[\d,]+  family \(%d\)$" % leaf["pid"])
        folded = parse_folded(self.report(trace, "--folded"))
        self.assertIn("family (%d)" % leaf["pid"], {s.frames[0] for s in folded})

    def test_pid_that_is_not_in_the_trace(self):
        trace, _ = self.follow(self.family, "f", "all")
        result = self.mleak("report", "--pid", "1", trace)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, "no process 1 in")

    def test_stopped_child_stays_stopped_until_it_is_continued(self):
        script = "sh -c 'echo > up; kill -STOP $$; exec %s leaf 19' & p=$!; " % self.family
        # Behind the echo it does nothing else that it would be stopped for.
        script += "until [ -s up ] && grep -q '^State:.[Tt]' /proc/$p/status; do sleep 0.05; done; sleep 0.3; "
        script += "cut -d' ' -f3 /proc/$p/stat; cat /proc/$p/comm; kill -CONT $p; wait"
        os.chmod(self.dir, 0o777)
        trace, out = self.record("sh", "-c", script, options=("--follow",))
        # A ptraced process that is stopped for its job shows as t.
        self.assertIn(out.splitlines()[0], "Tt")
        for truth in truths(out):
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])

        self.assertEqual(out.splitlines()[1], "sh")

    def test_signals_reach_a_followed_command_s_children(self):
        os.chmod(self.dir, 0o777)
        script = ("(sh -c 'trap \"echo got; exit 7\" USR1; echo > up; while :; do sleep 0.1; done' & p=$!; "
                  "until [ -s up ]; do sleep 0.05; done; kill -USR1 $p; wait $p; echo $?; "
                  "sleep 9 & q=$!; kill -KILL $q; wait $q; echo $?) 2>/dev/null")
        _, out = self.record("sh", "-c", script, options=("--follow",))
        self.assertEqual(out.split(), ["got", "7", "137"])

    def test_exit_status_of_a_followed_command(self):
        for script, status in (("sleep 0.1; exit 3", 3), ("kill -9 $$", -9), ("exit 0", 0)):
            result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c", script)
            self.assertEqual(result.status, status, result.err)

    def test_recording_goes_on_until_the_last_child_has_ended(self):
        trace, out = self.record("sh", "-c", "(sleep 0.7; %s leaf 33) & exit 0" % self.family,
                                 options=("--follow",))
        truth, = truths(out)
        self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])

    def test_children_live_on_when_the_recorder_is_killed(self):
        script = "echo runs; sleep 0.8; %s leaf 3; (sleep 0.8; %s leaf 5) & wait" % (self.family, self.family)
        process = self.start_mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c", script)
        self.assertEqual(read_line(process), "runs")
        process.kill()
        said = process.stdout
        self.assertEqual([t["who"] for t in truths(said.read().decode())], ["leaf", "leaf"])

    def test_followed_command_goes_on_after_the_recording(self):
        result = self.mleak("record", "--follow", "-d", "0.3", "-o", "x.mlk", "--", "sh", "-c",
                            "sleep 0.8; %s leaf 3; exit 6" % self.family)
        self.assertEqual(result.status, 6, result.err)
        self.assertEqual(len(truths(result.out)), 1)

    def test_stacks_from_before_an_exec_are_whole_though_taken_in_after_it(self):
        """What is code was another thing then; and only code is kept of a stack."""
        deep = self.compile("deep", DEEP)
        process = self.start_mleak("record", "-o", "x.mlk", "--", deep, self.family, "leaf", "5")
        pid = int(read_line(process))
        hold(process)
        os.kill(pid, signal.SIGUSR1)
        wait_until(lambda: state_of(pid) in "ZX", "the program does not end")
        process.send_signal(signal.SIGCONT)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertGreaterEqual(totals.of, 60)
        self.assert_whole(totals)


if __name__ == "__main__":
    unittest.main()
