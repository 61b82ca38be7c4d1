"""Programs begun in unusual ways are recorded by the preloaded library, or counted as lost."""

import os
import re
import unittest

from mleaktest import MLEAK_FAST, parse_totals
from test_preload import PreloadCase

# Each program has 1000 blocks of 331 bytes; what it is to begin is itself, with the argument "leaf".
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
static char *none[] = {NULL};

static long bare_execve(const char *path, char **argv)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_execve), "D"(path), "S"(argv), "d"(none)
			 : "rcx", "r11", "memory");
	return result;
}

int main(int argc, char **argv)
{
	char *leaf[] = {argv[0], "leaf", argc > 2 ? argv[2] : NULL, NULL}, command[500];
	for (int i = 0; i < 1000; i++)
		kept = malloc(331);
	if (!strcmp(argv[1], "leaf"))
		return argc > 2 ? usleep(atoi(argv[2]) * 1000) : 0;
	snprintf(command, sizeof(command), "%s leaf", argv[0]);
	if (!strcmp(argv[1], "system")) {
		clearenv();
		setenv("KEPT", "x", 1);
		if (system(command) || system("exit $(echo $KEPT | wc -c)") != 2 << 8)
			return 1;
		environ = NULL;
		FILE *p = popen(command, "w");
		return pclose(p);
	}
	if (!strcmp(argv[1], "execve"))
		syscall(SYS_execve, argv[0], leaf, none);
	if (!strcmp(argv[1], "execveat"))
		syscall(SYS_execveat, AT_FDCWD, argv[0], leaf, none, 0);
	if (!strcmp(argv[1], "at"))
		execveat(AT_FDCWD, argv[0], leaf, none, 0);
	if (!strcmp(argv[1], "bare"))
		bare_execve(argv[0], leaf);
	/* All else that goes by syscall(3) is as it was. */
	if (!strcmp(argv[1], "calls")) {
		char byte = 'x', got = 0;
		int ends[2];
		if (syscall(SYS_execve, "/none", leaf, none) != -1 || errno != ENOENT)
			return 2;
		if (syscall(SYS_close, 77) != -1 || errno != EBADF || syscall(SYS_getpid) != getpid())
			return 3;
		if (pipe(ends) || syscall(SYS_write, ends[1], &byte, 1L) != 1 ||
		    syscall(SYS_copy_file_range, ends[0], NULL, ends[1], NULL, 1L, 0L) != -1)
			return 4;
		if (syscall(SYS_read, ends[0], &got, 1L) != 1 || got != 'x')
			return 5;
		pid_t pid = syscall(SYS_fork);
		if (!pid)
			_exit(7);
		return waitpid(pid, ends, 0) != pid || ends[0] != 7 << 8;
	}
	return 0;
}
"""


class BeginsTest(PreloadCase):
    program = MLEAK_FAST

    def blocks(self, how, *options):
        """How many blocks of the programs' were recorded; nothing else was lost."""
        program = self.compile("program", PROGRAM)
        trace, _ = self.record(program, how, options=options)
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        return len(re.findall(r"^ *ALLOC .*, size 331,", self.report(trace, "--dump"), re.M))

    def test_what_the_c_library_begins_without_an_environment(self):
        self.assertEqual(self.blocks("system", "--follow"), 3000)
        self.assertEqual(self.blocks("system"), 1000)

    def test_execs_by_number(self):
        for how in ("execve", "execveat", "at"):
            for options in ([], ["--follow"]):
                with self.subTest(how=how, options=options):
                    self.assertEqual(self.blocks(how, *options), 2000)

    def lost(self, *argv, options=()):
        result = self.mleak("record", *self.options, *options, "-o", "x.mlk", "--", *argv,
                            **self.as_user)
        self.assertEqual(result.status, 0, result.err)
        return sum(int(n) for n in re.findall(r"lost: (\d+) ", result.err))

    def check_lost(self):
        program = self.compile("program", PROGRAM)
        static = self.compile("static", PROGRAM, "-static")
        for options in ([], ["--follow"]):
            with self.subTest(options):
                self.assertEqual(self.lost(program, "bare", "1200", options=options), 1)
                self.assertEqual(self.lost("sh", "-c", "exec %s bare 1200" % program,
                                           options=options), 1)
                self.assertEqual(self.lost("sh", "-c", "sleep 0.6; exec %s leaf 1200" % static,
                                           options=options), 1)
                self.assertEqual(self.lost("sh", "-c", "sleep 0.6; exec %s execve 1200" % program,
                                           options=options), 0)
        self.assertEqual(self.lost("sh", "-c", "%s bare 1200; :" % program, options=["--follow"]), 1)

    def test_programs_that_nobody_told_of_are_lost(self):
        self.check_lost()

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_programs_that_nobody_told_of_are_lost_to_root_too(self):
        self.as_user = {}
        self.check_lost()

    def test_other_calls_by_number(self):
        for options in ([], ["--follow"]):
            with self.subTest(options):
                self.assertEqual(self.blocks("calls", *options), 1000)


del PreloadCase
