"""Generated code that allocates as soon as it is there, before a recorder can have looked at it."""

import os
import re
import subprocess

from backends import both_backends
from mleaktest import LONG, TESTS, parse_folded
from waitingtest import WaitingCase

PROGRAM = os.path.join(TESTS, "live", "generated_target.c")
BLOCKS, SIZE = 61 * 23, 47
# As Erlang's and .NET's compilers have it: code is written by one mapping of a file without a name,
# and executed by another one.  A first such file only shows that this is allowed.
TWICE = rb"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned char function[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
void *volatile kept;

__attribute__((noinline, noipa)) static void leak_here(void)
{
	for (int i = 0; i < 61 * 23; i++)
		kept = malloc(47);
}

static void *map(int fd, size_t len, int prot)
{
	void *at = mmap(NULL, len, prot, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		exit(1);
	return at;
}

int main(void)
{
	int first = memfd_create("code", 0), fd = memfd_create("code", 0);
	char path[64];
	FILE *names;
	void *to, *code;

	if (ftruncate(first, 4096) || ftruncate(fd, 65536))
		return 1;
	munmap(map(first, 4096, PROT_READ | PROT_EXEC), 4096);
	close(first);
	to = map(fd, 65536, PROT_READ | PROT_WRITE);
	code = map(fd, 65536, PROT_READ | PROT_EXEC);
	close(fd);
	memcpy(to, function, sizeof(function));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	names = fopen(path, "w");
	if (!names || fprintf(names, "%lx %zx generated_code\n", (unsigned long)code, sizeof(function)) < 0 ||
	    fclose(names))
		return 1;
	((void (*)(void (*)(void)))code)(leak_here);
	printf("%d\n", 61 * 23);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
"""
PATH = ["main", "generated_code_[j]", "leak_here"]


def forget_names(pid):
    os.unlink("/tmp/perf-%d.map" % pid)


@both_backends
class GeneratedTest(WaitingCase):
    def setUp(self):
        super().setUp()
        self.target = self.path("generated")
        subprocess.run(["gcc", "-O2", "-o", self.target, PROGRAM], check=True, timeout=LONG)

    def check(self, trace):
        stacks = [stack for stack in parse_folded(self.mleak("report", "--format=folded", trace).out)
                  if stack.frames[-1] == "leak_here"]
        through = [stack for stack in stacks
                   if stack.frames[0] == "_start" and [frame for frame in stack.frames if frame in PATH] == PATH]
        self.assertEqual(sum(stack.bytes for stack in stacks), BLOCKS * SIZE)
        self.assertEqual(sum(stack.bytes for stack in through), BLOCKS * SIZE)

    def test_stacks_go_through_code_that_has_just_been_made(self):
        self.check(self.record_waiting(self.target, said=str(BLOCKS), before_end=forget_names)[0])

    def test_the_process_ends_right_after_that(self):
        trace, _ = self.record(self.target, "end")
        forget_names(int(re.search(r"\(pid (\d+)\)", self.mleak("report", trace).out)[1]))
        self.check(trace)

    def test_code_in_a_file_without_a_name_is_no_module_that_is_lost(self):
        source = self.write("twice.c", TWICE)
        subprocess.run(["gcc", "-O2", "-o", self.target, source], check=True, timeout=LONG)
        trace, _ = self.record_waiting(self.target, said=str(BLOCKS), before_end=forget_names)
        self.check(trace)
        self.assertNotRegex(self.mleak("report", "--dump", trace).out, "MODULE .*memfd")
