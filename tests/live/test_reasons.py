"""What mleak gives as the reason is the reason: of a /proc that is not one, of children that cannot be
recorded, of a process that became another program."""

import os
import re
import shutil
import subprocess

from faulttest import FaultCase
from mleaktest import needs_bpf

# Leaks, and runs until its standard input ends, which is longer than anyone needs to look at it.
CHILD = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
int main(void)
{
	char c;
	for (int i = 0; i < 23; i++)
		block = malloc(47);
	write(1, "up\n", 3);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
"""

# parent NUMBER PROGRAM: leaks, runs so many children, and leaks again when they have ended.
PARENT = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile block;
__attribute__((noinline, noipa)) void leak_13(void)
{
	for (int i = 0; i < 13; i++)
		block = malloc(53);
}
int main(int argc, char **argv)
{
	leak_13();
	for (int i = 0; i < atoi(argv[1]); i++)
		if (!fork()) {
			execl(argv[2], argv[2], (char *)0);
			_exit(9);
		}
	while (wait(NULL) > 0)
		;
	leak_13();
	return argc != 3;
}
"""

# Has the first page of the file ./code mapped to be executed, as Lisp's core.
CORE = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
static void *volatile block;
int main(void)
{
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("code", O_RDONLY), 0) == MAP_FAILED)
		return 1;
	for (int i = 0; i < 23; i++)
		block = malloc(47);
	return 0;
}
"""

# exit(0) of i386
EXIT_32 = """.globl _start
_start:	movl $1, %eax
	xorl %ebx, %ebx
	int $0x80
"""


@needs_bpf
class ReasonsTest(FaultCase):
    def run_in_namespace(self, flags, script, *argv):
        result = self.finish(self.spawn(["unshare", *flags, "sh", "-c", script + ' && "$@"', "sh",
                                         *argv]))
        if "unshare:" in result.err or "mount:" in result.err:
            self.skipTest(result.err)
        return result

    def test_something_else_is_mounted_on_proc(self):
        target = self.start(self.compile("target"))
        result = self.run_in_namespace(["-m"], "mount -t tmpfs none /proc", self.program, "record", "-o",
                                       self.path("x.mlk"), "-p", str(target.pid))
        self.assertEqual(result.status, 125)
        self.assertEqual(result.err, "mleak: cannot watch process %d: /proc is not a proc file "
                                     "system; mount one (mount -t proc proc /proc), or run "
                                     "mleak where there is one\n"
                         % target.pid)

    def test_proc_of_another_pid_namespace(self):
        """A command is started there that has a number by which /proc shows another, or nothing."""
        result = self.run_in_namespace(["-p", "-f"], "true", self.program, "record", "-o",
                                       self.path("x.mlk"), "--", self.sample("single"))
        self.assertEqual((result.status, result.out), (125, ""))
        self.assertRegex(result.err, r"\Amleak: cannot watch process \d+: /proc belongs to "
                                     r"another pid namespace; mount that of this one \(mount -t "
                                     r"proc proc /proc\)\n\Z")

    def record_children(self, nr):
        """Record so many children whose malloc cannot be found, each of which has lived until mleak
        could say so."""
        self.compile("child", "-static", "-s", source=CHILD)
        self.compile("parent", source=PARENT)
        mleak = self.start_mleak("record", "--follow", "-o", self.path("x.mlk"), "--",
                                 self.path("parent"), str(nr), self.path("child"),
                                 stdin=subprocess.PIPE)
        self.wait_for_words(mleak, r"(?s)(cannot record process [^\n]*none of its symbols names malloc.*)")
        result = self.finish(mleak)
        self.assertEqual((result.status, result.out), (0, nr * "up\n"), result.err)
        return result.err

    def test_children_that_are_not_recorded_put_no_block_of_the_parent_s_in_doubt(self):
        self.record_children(3)
        report = self.mleak("report", self.path("x.mlk")).out
        self.assertIn("programs or processes that were not recorded: 3\n", report)
        self.assertIn("leak_13", report)
        self.assertNotIn("suspect", report)

    def test_what_runs_and_cannot_be_recorded_has_not_ended(self):
        err = self.record_children(1)
        self.assertRegex(err, r"not recorded: child \(pid \d+\): it runs a program whose malloc cannot be "
                         r"found\n")
        self.assertNotIn("ended before", err)
        self.assertNotIn("at the end", err)

    def test_a_32_bit_program_is_called_that(self):
        """One that a child runs, and one that takes the place of the command."""
        self.write("exit.s", EXIT_32.encode())
        subprocess.run(["as", "--32", "-o", "exit.o", "exit.s"], cwd=self.dir, check=True)
        subprocess.run(["ld", "-m", "elf_i386", "-o", "exit32", "exit.o"], cwd=self.dir, check=True)
        try:
            subprocess.run(["./exit32"], cwd=self.dir, check=True)
        except OSError as error:
            self.skipTest("no 32-bit program runs here: %s" % error)
        result = self.finish(self.spawn([self.program, "record", "--backend", "bpf", "--follow", "-o",
                                         self.path("x.mlk"), "--", "sh", "-c", "./exit32; exec ./exit32"]))
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(re.findall(r"not recorded: exit32 \(pid \d+\): it runs a program that is not a "
                                        "64-bit x86-64 one", result.err)), 2, result.err)

    def test_a_file_of_code_that_is_no_elf_file_is_not_lost(self):
        """One that should be, and cannot be read, is."""
        self.write("core.c", CORE.encode())
        subprocess.run(["gcc", "-o", "core", "core.c"], cwd=self.dir, check=True)
        for content, lost in (b"LCSB" * 1024, False), (b"\x7fELF" * 1024, True):
            with self.subTest(content[:4]):
                self.write("code", content)
                trace, _ = self.record("./core", options=["--backend", "bpf"])
                info = self.mleak("info", trace).out
                self.assertIn(self.path("code"), info)
                self.assertEqual("1 module whose file could not be read" in info, lost, info)

    def test_of_many_children_some_are_told_and_the_others_summed_up(self):
        err = self.record_children(17)
        self.assertEqual(err.count("none of its symbols names malloc"), 1, err)
        self.assertRegex(err, r"not recorded: child \(pid \d+\): [^\n]*; the same for 14 more\n")
        self.assertLess(len(err.splitlines()), 15, err)

    def test_the_header_names_the_program_after_an_exec(self):
        """By the name that the kernel has of it, and the command that was given."""
        shutil.copy("/bin/sleep", self.path("sleeper"))
        trace, _ = self.record("sh", "-c", "exec ./sleeper 0")
        header = self.report(trace).splitlines()[0]
        self.assertRegex(header, r"^trace '[^']*': sh -c exec ./sleeper 0, then sleeper \(pid \d+\), ")
        trace, _ = self.record("sh", "-c", "./sleeper 0; true")
        self.assertNotIn(", then ", self.report(trace).splitlines()[0])
