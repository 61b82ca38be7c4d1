"""Children that are not recorded, for want of --follow: their number.  The programs below count them
by what their calls return."""

import os
import re
import shutil
import subprocess

from backends import both_backends
from mleaktest import MLEAK_FAST, Case, needs_bpf, read_line, wait_until

KINDS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *const program[] = {"true", NULL}, *const none[] = {"/nowhere/at/all", NULL};
static int began;
/* Count child @pid, and wait for it. */
static void count(pid_t pid)
{
	began += pid > 0;
	if (pid > 0)
		waitpid(pid, NULL, 0);
}
static void start(char kind)
{
	struct rlimit limit;
	pid_t pid;
	FILE *stream;
	switch (kind) {
	case 'f':
		errno = ENOTTY;
		pid = fork();
		if (errno != ENOTTY)
			_exit(9);
		if (!pid)
			_exit(0);
		count(pid);
		break;
	case 'v': /* its child starts another, which is no child of ours */
		pid = vfork();
		if (!pid) {
			posix_spawnp(&pid, program[0], NULL, NULL, program, environ);
			_exit(0);
		}
		count(pid);
		break;
	case 's':
		posix_spawnp(&pid, program[0], NULL, NULL, program, environ);
		count(pid);
		break;
	case 'n': /* the child begins, and its program does not */
		began += posix_spawn(&pid, none[0], NULL, NULL, none, environ) == ENOENT;
		break;
	case 'y':
		began += system("true") == 0;
		break;
	case 'i': /* the C library cannot wait for its child, and says so */
		signal(SIGCHLD, SIG_IGN);
		began += system("true") == -1 && errno == ECHILD;
		signal(SIGCHLD, SIG_DFL);
		break;
	case 'p':
		stream = popen("true", "r");
		began += stream && pclose(stream) == 0;
		break;
	case 'x': /* none may begin any more */
		getrlimit(RLIMIT_NPROC, &limit);
		limit.rlim_cur = 0;
		setrlimit(RLIMIT_NPROC, &limit);
		if (fork() >= 0 || errno != EAGAIN)
			_exit(8);
		if (posix_spawnp(&pid, program[0], NULL, NULL, program, environ) != EAGAIN)
			_exit(8);
		if (system("true") == 0 || popen("true", "r"))
			_exit(8);
		break;
	}
}
int main(int argc, char **argv)
{
	(void)argc;
	free(malloc(47));
	for (const char *kind = argv[1]; *kind; kind++)
		start(*kind);
	printf("began=%d\n", began);
	return 0;
}
"""

# Forks at a byte of its input, and ends before the child can have done anything.
ENDS = r"""
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char byte;
	free(malloc(47));
	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		_exit(9);
	_exit(fork() < 0);
}
"""


class LeftCase(Case):
    program = MLEAK_FAST

    def compile(self, name, source):
        self.write(name + ".c", source.encode())
        subprocess.run(["gcc", "-O1", "-o", name, name + ".c"], cwd=self.dir, check=True)
        return self.path(name)

    def said(self, trace):
        """How many children the report of @trace calls not recorded."""
        found = re.search(r"^  not recorded: ([\d,]+) child process", self.report(trace), re.M)
        return int(found[1].replace(",", "")) if found else 0


@both_backends
class LeftChildrenTest(LeftCase):
    def setUp(self):
        super().setUp()
        self.kinds = self.compile("kinds", KINDS)

    def check(self, kinds, *before):
        """Record the program, which starts one child of each of @kinds; it may be begun by @before."""
        trace, out = self.record(*before, self.kinds, kinds)
        self.assertEqual(out, "began=%d\n" % len(kinds.rstrip("x")))
        self.assertEqual(self.said(trace), len(kinds.rstrip("x")), kinds)

    def test_each_kind_of_child_is_counted_once(self):
        for kinds in ("f", "v", "s", "n", "y", "i", "p", "ffvvsnyipp"):
            with self.subTest(kinds=kinds):
                self.check(kinds)

    def test_a_child_that_cannot_begin_is_not_counted(self):
        before = []
        if os.geteuid() == 0 and not getattr(self, "preloaded", False):
            before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            os.chmod(self.dir, 0o755)
        self.check("fyx", *before)

    def test_the_recorder_says_how_many(self):
        process = self.start_mleak("record", "-o", self.path("x.mlk"), "--", self.kinds, "fsy")
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("3 child processes were started and not recorded; --follow records them",
                      result.err)


@needs_bpf
class LastForkTest(LeftCase):
    programs = 24

    def test_children_of_those_that_end_at_once_are_counted(self):
        """Each forks and ends while gdb holds the recorder where that has looked at its clock, thus at
        one after another of its steps: also between those of reading forks and ends."""
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed")
        program = self.compile("ends", ENDS)
        pids, steps = [], []
        for i in range(self.programs):
            fifo = self.path("go%d" % i)
            os.mkfifo(fifo)
            source = os.open(fifo, os.O_RDWR)
            process = self.spawn([program], stdin=source)
            os.close(source)
            self.assertEqual(read_line(process), "ready")
            pids += ["-p", str(process.pid)]
            steps += ["-ex", "tbreak clock_gettime", "-ex", "continue", "-ex", "finish",
                      "-ex", "shell printf x > %s; until grep -q '^State:.Z' /proc/%d/status; "
                      "do :; done" % (fifo, process.pid)]
        recorder = self.start_mleak("record", "-o", self.path("x.mlk"), *pids)
        wait_until(lambda: os.path.exists(self.path("x.mlk")) or recorder.poll() is not None,
                   "no recording begins")
        gdb = self.finish(self.spawn(["gdb", "-nx", "-batch", "-p", str(recorder.pid), *steps,
                                      "-ex", "detach"]))
        self.assertEqual(len(re.findall("hit Temporary breakpoint", gdb.out)), self.programs,
                         gdb.out + gdb.err)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.said(self.path("x.mlk")), self.programs)


class PreloadLastForkTest(LeftCase):
    def test_child_of_a_command_that_ends_at_once_is_counted(self):
        program = self.compile("ends", ENDS)
        with open("/dev/zero", "rb") as stdin:
            trace, _ = self.record(program, options=("--backend", "preload"), stdin=stdin)
        self.assertEqual(self.said(trace), 1)
