"""A signal handler on a higher alternate stack, inside an allocator's function, which allocates: it
does not cost the target its life, and what was not seen is counted."""

import os
import re
import shutil

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
ROUNDS = 23

# posix_memalign() writes its result to a page that cannot be written.
SOURCE = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#ifndef FLAGS
#define FLAGS 0
#endif
enum { PAGE = 4096, SIZE = 1 << 16, ROUNDS = 23 };
static void *volatile kept;
static void **page;
static int handled, made;
__attribute__((noinline)) static void *leak_in_handler(void)
{
	void *block = malloc(53);
	handled += block != NULL;
	return block;
}
static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	kept = leak_in_handler();
	mprotect((void *)((uintptr_t)info->si_addr & -(uintptr_t)PAGE), PAGE, PROT_READ | PROT_WRITE);
}
__attribute__((noinline)) static void leak_in_work(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		mprotect(page, PAGE, PROT_READ);
		made += posix_memalign(page, 64, 67) == 0;
		kept = *page;
	}
}
int main(int argc, char **argv)
{
	char *room = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t other = {.ss_sp = argc > 1 ? room : room + 2 * SIZE + PAGE, .ss_size = SIZE - PAGE,
			 .ss_flags = FLAGS};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	ucontext_t back, worker;
	(void)argv;
	mprotect(room + 2 * SIZE, PAGE, PROT_NONE);
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	getcontext(&worker);
	worker.uc_stack.ss_sp = room + SIZE;
	worker.uc_stack.ss_size = SIZE;
	worker.uc_link = &back;
	makecontext(&worker, leak_in_work, 0);
	swapcontext(&back, &worker);
	printf("lived %d %d\n", handled, made);
	return 0;
}
"""


@needs_bpf
class AltstackTest(FaultCase):
    """The C library is a copy: where another recorder has return probes on the same file, the kernel
    puts them on this program's calls too."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("lib"))
        shutil.copy(LIBC, self.path("lib"))
        self.env = dict(os.environ, LD_LIBRARY_PATH=self.path("lib"))

    def check(self, *options, args=(), flags=(), all_seen=True, runs=3):
        program = self.compile("alt", *flags, source=SOURCE)
        truth = "lived %d %d\n" % (ROUNDS, ROUNDS)
        self.assertEqual(self.finish(self.spawn([program, *args], env=self.env)).out, truth)
        for _ in range(runs):
            result = self.mleak("record", *options, "-o", self.path("x.mlk"), "--", program, *args,
                                env=self.env)
            self.assertEqual((result.status, result.out), (0, truth), result.err)
            self.assertRegex(self.dump(), r"\n  END reason 1, ")
            lost = re.search(r"lost: (\d+) allocator calls that were not seen to return", result.err)
            lost = int(lost[1]) if lost else 0
            stacks = parse_folded(self.mleak("report", self.path("x.mlk"), "--folded").out)
            in_work, in_handler = (sum(s.bytes for s in stacks if name in s.frames)
                                   for name in ("leak_in_work", "leak_in_handler"))
            self.assertEqual(in_work, ROUNDS * 67)
            self.assertEqual(in_handler + 53 * lost, ROUNDS * 53)
            if all_seen:
                self.assertEqual(lost, 0)

    def test_a_lower_one(self):
        self.check(args=("lower",))

    def test_a_higher_one(self):
        self.check(all_seen=False)

    def test_one_that_is_disarmed_while_it_is_used(self):
        self.check(flags=("-DFLAGS=(int)(1u << 31)",), all_seen=False)

    def test_without_return_probes_all_is_seen(self):
        self.check("--returns=ret")

    def test_with_links_that_do_not_tell_there_are_none(self):
        self.check("--uprobes=perf", runs=1)
        shown = self.mleak("record", "--uprobes=perf", "--dry-run", "--", self.path("alt"), env=self.env)
        self.assertRegex(shown.out, r"(?m)^  malloc .* entry\+ret ")

    def test_a_static_program_that_has_one(self):
        self.env = dict(os.environ)
        self.check("--uprobes=perf", flags=("-static",), runs=1)
