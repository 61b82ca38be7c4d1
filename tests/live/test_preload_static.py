"""Statically linked programs record by libmleak-wrap.a."""

import os
import re
import subprocess

from mleaktest import MLEAK_FAST, parse_folded, parse_totals
from test_preload import PreloadCase

PROGRAM = r"""
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept[4096];
int n, counted;
__attribute__((noinline)) void leak(int count, int size)
{
	for (int i = 0; i < count; i++)
		kept[n++ % 4096] = malloc(size);
}
__attribute__((noinline)) void leak_family(void)
{
	void *p;
	kept[n++] = calloc(2, 51);
	kept[n++] = reallocarray(NULL, 2, 52);
	kept[n++] = realloc(malloc(5), 103);
	kept[n++] = aligned_alloc(64, 128);
	kept[n++] = memalign(64, 99);
	kept[n++] = valloc(97);
	kept[n++] = pvalloc(98);
	posix_memalign(&p, 64, 101);
	kept[n++] = p;
	kept[n++] = strdup("of the C library");
	kept[n++] = mmap(0, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(mmap(0, 7 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 7 * 4096);
}
static void *run(void *arg)
{
	leak(5, 31);
	for (int i = 0; i < 500; i++, __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED))
		free(malloc(307));
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t[4];
	int status;
	if (!getenv("AGAIN") && argc > 1) {
		leak(3, 59);
		setenv("AGAIN", "", 1);
		execv("/proc/self/exe", argv);
	}
	leak(23, 47);
	leak_family();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	if (fork() == 0)
		_exit(getenv("MLEAK_PRELOAD") ? 9 : 0);
	wait(&status);
	printf("counted: %d status %d\n", counted, status);
	return 3;
}
"""

# What calls none of the wrapped functions itself.
CXX = r"""
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
__attribute__((noinline)) void leak_new()
{
	for (int i = 0; i < 7; i++) {
		char *p = new char[77];
		asm volatile("" : : "r"(p));
	}
}
int main()
{
	std::map<int, std::string> m;
	for (int i = 0; i < 99; i++)
		m[i] = std::string(307, 'x');
	leak_new();
	try {
		throw std::runtime_error("thrown");
	} catch (std::exception &e) {
		std::printf("%s %zu\n", e.what(), m.size());
	}
}
"""


class StaticTest(PreloadCase):
    program = MLEAK_FAST

    def flags(self):
        return subprocess.run([self.program, "--wrap-flags"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.split()

    def sizes(self, trace, size):
        return len(re.findall(r"^ *ALLOC .*, size %d," % size, self.report(trace, "--dump"), re.M))

    def record_with(self, status, *argv):
        """As record() of a command that ends with @status."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "--backend", "preload", "-o", trace, "--", *argv,
                            **self.as_user)
        self.assertEqual(result.status, status, result.err)
        return trace, result

    def check(self, program):
        plain = subprocess.run([program], stdout=subprocess.PIPE, text=True)
        self.assertEqual((plain.returncode, plain.stdout), (3, "counted: 2000 status 0\n"))
        trace, result = self.record_with(3, program)
        self.assertEqual(result.out, plain.stdout)
        totals = parse_totals(self.report(trace))
        self.assert_whole(totals)
        self.assertEqual(totals.allocations.blocks - totals.frees.blocks,
                         totals.outstanding.blocks)
        self.assertEqual(self.sizes(trace, 307), 2000)
        stacks = parse_folded(self.report(trace, "--format=folded"))
        by_path = {s.frames[-2:][0] + ";" + s.frames[-1]: s.bytes for s in stacks}
        self.assertEqual(by_path["main;leak"], 23 * 47)
        self.assertEqual(by_path["run;leak"], 4 * 5 * 31)
        self.assertEqual(by_path["leak_family;strdup"], 17)
        self.assertEqual(by_path["main;leak_family"],
                         102 + 104 + 103 + 128 + 99 + 97 + 98 + 101 + 3 * 4096)

    def test_programs_count_as_they_say_themselves(self):
        for how in (["-static"], ["-static-pie", "-fPIE"]):
            with self.subTest(how):
                self.check(self.compile("program", PROGRAM, *how, *self.flags()))

    def test_the_flags_may_stand_before_the_sources(self):
        flags = self.flags()
        self.write("program.c", PROGRAM.encode())
        subprocess.run(["gcc", "-static", *flags, "-O2", "-fno-builtin", "-o", "program",
                        "program.c"], cwd=self.dir, check=True)
        trace, _ = self.record_with(3, self.path("program"))
        self.assertEqual(self.sizes(trace, 307), 2000)

    def test_cxx_programs_count_through_the_operators(self):
        program = self.compile("cxx", CXX, "-static", *self.flags(), compiler="g++")
        trace, result = self.record_with(0, program)
        self.assertEqual(result.out, "thrown 99\n")
        self.assertEqual(self.sizes(trace, 308), 99)
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual([s.bytes for s in stacks if "leak_new()" in s.frames], [7 * 77])
        self.assert_whole(parse_totals(self.report(trace)))

    def test_exec_of_one_from_a_script_and_from_itself(self):
        program = self.compile("program", PROGRAM, "-static", *self.flags())
        trace, result = self.record_with(3, "sh", "-c", "exec '%s'" % program)
        self.assertEqual(self.sizes(trace, 307), 2000)
        self.assertNotIn("lost: ", result.err)
        trace, result = self.record_with(3, program, "again")
        self.assertEqual((self.sizes(trace, 307), self.sizes(trace, 59)), (2000, 3))
        self.assertRegex(self.report(trace), r"gone at exec")
        self.assertNotIn("lost: ", result.err)

    def test_a_dynamic_program_with_it_is_recorded_once(self):
        for how in (["-no-pie"], ["-pie", "-fPIE"]):
            program = self.compile("program", PROGRAM, *how, *self.flags())
            for options in ([], ["--follow"], ["--guard"], ["--follow", "--guard"]):
                with self.subTest(how=how, options=options):
                    trace = self.path("x.mlk")
                    result = self.mleak("record", "--backend", "preload", *options, "-o", trace,
                                        "--", program, "again", **self.as_user)
                    self.assertIn("counted: 2000 status ", result.out)
                    self.assertEqual((self.sizes(trace, 307), self.sizes(trace, 59)), (2000, 3))
                    self.assertNotIn("lost: ", result.err)

    def test_a_library_of_another_version_is_refused(self):
        program = self.compile("program", PROGRAM, "-static", *self.flags())
        with open(program, "r+b") as elf:
            data = elf.read()
            note = data.index(b"\6\0\0\0\x08\0\0\0\1\0\0\0mleak\0\0\0")
            elf.seek(note + 20)
            elf.write(bytes([data[note + 20] ^ 1]))
        _, result = self.record_with(125, program)
        self.assert_one_message(result.err, "another version")
        self.assertFalse(os.path.exists(self.path("x.mlk")))

    def test_a_program_without_it_is_told_what_to_do(self):
        _, result = self.record_with(125, self.compile("program", PROGRAM, "-static"))
        self.assert_one_message(result.err, "mleak --wrap-flags")


del PreloadCase
