"""A program's own version of a function that the preloaded library has, too, calls the next one: the
library's. That must not call the program's again."""

from mleaktest import MLEAK_FAST, parse_totals
from test_preload import PreloadCase

# Erlang's runtime has a sigaction() of its own, which calls the next __sigaction(). Sandboxes have
# an execve() that looks at the path first.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *volatile kept;
static volatile sig_atomic_t seen, calls;

int sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	int (*next)(int, const struct sigaction *, struct sigaction *);
	next = (int (*)(int, const struct sigaction *, struct sigaction *))
		dlsym(RTLD_NEXT, "__sigaction");
	if (++calls > 99)
		_exit(3);
	return next(sig, action, old);
}

int execve(const char *path, char *const argv[], char *const env[])
{
	if (++calls > 99)
		_exit(4);
	return (int)syscall(SYS_execve, path, argv, env);
}

static void handler(int sig) { seen = sig; }

int main(int argc, char **argv)
{
	struct sigaction a = {.sa_handler = handler}, old;
	char *leaf[] = {argv[0], "leaf", NULL};
	for (int i = 0; i < 1000; i++)
		kept = malloc(331);
	if (argc > 1)
		return 7;
	if (sigaction(SIGUSR1, &a, NULL) || sigaction(SIGUSR1, NULL, &old) || calls != 2)
		return 1;
	raise(SIGUSR1);
	if (seen != SIGUSR1 || old.sa_handler != handler)
		return 2;
	return execve(argv[0], leaf, environ);
}
"""


class OverriddenTest(PreloadCase):
    program = MLEAK_FAST

    def check(self, *options):
        program = self.compile("program", PROGRAM, "-rdynamic")
        self.assertEqual(self.finish(self.spawn([program])).status, 7)
        result = self.mleak("record", *self.options, *options, "-o", "x.mlk", "--", program,
                            **self.as_user)
        self.assertEqual(result.status, 7, result.err)
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertEqual((totals.allocations, totals.outstanding, totals.lost),
                         ((2000, 662000), (1000, 331000), 0))

    def test_functions_that_call_the_next(self):
        self.check()

    def test_the_same_with_guard_bytes(self):
        self.check("--guard")


del PreloadCase
