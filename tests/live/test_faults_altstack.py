"""A signal handler on a higher alternate stack, inside an allocator's function, is the one thing
that the README says the target may die of."""

import os
import signal

from faulttest import FaultCase
from mleaktest import ROOT, needs_bpf

# posix_memalign() writes its result to a page that cannot be written.
SOURCE = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
enum { PAGE = 4096, SIZE = 1 << 16 };
static void *volatile kept;
static void **page;
static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	kept = malloc(53);
	mprotect((void *)((uintptr_t)info->si_addr & -(uintptr_t)PAGE), PAGE, PROT_READ | PROT_WRITE);
}
static void work(void) { kept = posix_memalign(page, 64, 67) ? NULL : page; }
int main(int argc, char **argv)
{
	char *room = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t other = {.ss_sp = argc > 1 ? room : room + 2 * SIZE, .ss_size = SIZE};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	ucontext_t back, worker;
	(void)argv;
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	getcontext(&worker);
	worker.uc_stack.ss_sp = room + SIZE;
	worker.uc_stack.ss_size = SIZE;
	worker.uc_link = &back;
	makecontext(&worker, work, 0);
	swapcontext(&back, &worker);
	puts("lived");
	return 0;
}
"""


@needs_bpf
class AltstackTest(FaultCase):
    def record_it(self, *args):
        program = self.compile("alt", source=SOURCE)
        self.assertEqual(self.finish(self.spawn([program, *args])).out, "lived\n")
        return self.mleak("record", "-o", self.path("x.mlk"), "--", program, *args)

    def test_a_lower_one_does_no_harm(self):
        result = self.record_it("lower")
        self.assertEqual((result.status, result.out), (0, "lived\n"))

    def test_a_higher_one_is_in_the_readme_and_leaves_a_whole_trace(self):
        result = self.record_it()
        self.assertIn(result.status, (0, -signal.SIGILL))
        self.assertRegex(self.dump(), r"\n  END reason 1, ")
        with open(os.path.join(ROOT, "README.md")) as readme:
            self.assertIn("sigaltstack", readme.read())
