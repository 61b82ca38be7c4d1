"""--guard where a program ends without its destructors: by a signal, quick_exit, _exit, or unseen."""

import collections
import json
import re
import signal
import subprocess

from mleaktest import MLEAK_FAST
from test_preload import PreloadCase

# 160 bytes are written behind a block of 47, onto its neighbour, which nobody touches again; then it ends.
OVERRUN = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char *volatile block, *volatile next;
__attribute__((noinline)) static void make(void)
{
	block = malloc(47);
	next = malloc(1000);
	for (int i = 0; i < 47 + 160; i++)
		((volatile char *)block)[i] = 'x';
}
__attribute__((noinline)) static void crash(void) { *(volatile int *)8 = 1; }
__attribute__((noinline)) static int sink(int n)
{
	volatile char room[4096];
	room[n % 4096] = 1;
	return sink(n + 1) + room[0];
}
static void *run(void *arg) { crash(); return arg; }
static void handler(int sig)
{
	if (signal(sig, SIG_DFL) == handler)
		raise(sig);
}
static void on_other_stack(void)
{
	static char room[65536];
	stack_t s = {.ss_sp = room, .ss_size = sizeof(room)};
	sigaltstack(&s, NULL);
	sink(0);
}
int main(int argc, char **argv)
{
	sigset_t set;
	pthread_t t;
	int fds[2], status;
	char how = argv[1][0];

	make();
	switch (how) {
	case 'S': crash();
	case 'a': abort();
	case 't': kill(getpid(), SIGTERM); break;
	case 'q': quick_exit(3);
	case 'e': _exit(3);
	case 'E': return 3;
	case 'T': pthread_create(&t, NULL, run, NULL); break;
	case 'r': raise(SIGRTMIN + 3);
	case 'p': if (!pipe(fds) && !close(fds[0])) write(fds[1], "x", 1); return 9;
	case 'b': __builtin_trap();
	case 'h': signal(SIGTERM, handler); raise(SIGTERM); return 9;
	case 'o': on_other_stack();
	case 'm': /* blocked, and let through later */
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGUSR1);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		return 9;
	case 'f': /* a child that is not recorded */
		if (!fork())
			kill(getpid(), SIGTERM);
		wait(&status);
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 3 : 9;
	case 'v':
		if (!vfork())
			kill(getpid(), SIGTERM);
		wait(&status);
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 3 : 9;
	/* nobody can look */
	case 'k': kill(getpid(), SIGKILL); break;
	case 'c': __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(3) : "rcx", "r11", "memory"); break;
	case 's': sink(0);
	}
	for (;;)
		pause();
}
"""

# What a program learns of its signals, and what it does with them.
ASKS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int handled;
static void handler(int sig) { handled = handled * 100 + sig; }
static const char *name(sighandler_t h)
{
	return h == SIG_DFL ? "default" : h == SIG_IGN ? "ignored" : h == handler ? "ours"
	     : h == SIG_ERR ? "error" : "another";
}
static void ask(int sig)
{
	struct sigaction a;
	memset(&a, 1, sizeof(a));
	int err = sigaction(sig, NULL, &a);
	printf("%d: %d %s %x %d\n", sig, err, name(a.sa_handler), a.sa_flags & ~0x04000000,
	       sigismember(&a.sa_mask, SIGTERM));
}
static void ask_all(void) { for (int sig = 0; sig <= 65; sig++) ask(sig); }
int main(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_NODEFER}, old;
	sighandler_t (*set[])(int, sighandler_t) = {signal, ssignal, __sysv_signal, sigset};
	ask_all();
	for (int i = 0; i < 4; i++)
		for (int sig = 1; sig <= 64; sig += 7) {
			printf("%s ", name(set[i](sig, handler)));
			if (sig != 22)
				raise(sig);
			printf("%d ", handled);
			printf("%s ", name(set[i](sig, SIG_IGN)));
			raise(sig);
			printf("%s\n", name(set[i](sig, SIG_DFL)));
			ask(sig);
		}
	sigaction(SIGUSR1, &a, &old);
	ask(SIGUSR1);
	raise(SIGUSR1);
	printf("%d %s\n", handled, name(old.sa_handler));
	sigaction(SIGUSR1, &old, &a);
	printf("%s\n", name(a.sa_handler));
	siginterrupt(SIGTERM, 1);
	ask(SIGTERM);
	printf("%d\n", system("kill -TERM $$"));
	ask_all();
	fflush(stdout);
	raise(SIGUSR1);
	return 9;
}
"""

Way = collections.namedtuple("Way", "how status")
SEEN = (Way("S", -signal.SIGSEGV), Way("a", -signal.SIGABRT), Way("t", -signal.SIGTERM), Way("q", 3),
        Way("e", 3), Way("E", 3), Way("T", -signal.SIGSEGV), Way("r", -signal.SIGRTMIN - 3),
        Way("p", -signal.SIGPIPE), Way("b", -signal.SIGILL), Way("h", -signal.SIGTERM),
        Way("o", -signal.SIGSEGV), Way("m", -signal.SIGUSR1), Way("f", 3), Way("v", 3))
UNSEEN = (Way("k", -signal.SIGKILL), Way("c", 3), Way("s", -signal.SIGSEGV))


class GuardSignalsTest(PreloadCase):
    program = MLEAK_FAST

    def record_way(self, program, way, *options):
        """What the report says of overruns, as an object and in words, and the recorder's messages."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "--guard", *options, "-o", trace, "--", program, way.how, **self.as_user)
        self.assertEqual(result.status, way.status, result.err)
        self.assert_messages(result.err)
        report = self.mleak("report", "--format=json", trace)
        self.assertEqual(report.status, 0)
        self.assertEqual("were not looked at for overruns" in report.err, "not looked at" in result.err)
        return json.loads(report.out)["overruns"], self.report(trace), result.err

    def native(self, program, way):
        status = subprocess.run([program, way.how], cwd=self.dir, stderr=subprocess.DEVNULL,
                                preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)).returncode
        self.assertEqual(status, way.status)

    def test_overruns_are_found_however_the_program_ends(self):
        program = self.compile("ending", OVERRUN, "-w")
        for way in SEEN:
            self.native(program, way)
            for options in ((), ("--follow",)):
                with self.subTest(way.how + str(options)):
                    found, text, err = self.record_way(program, way, *options)
                    block = [s for s in found["first_sites"] if s["size"] == 47]
                    self.assertEqual([s["found"]["at"] for s in block], ["exit"])
                    self.assertIn("make", [f["function"] for f in block[0]["block"]["frames"]])
                    self.assertNotIn("looked at", text + err)

    def test_many_times(self):
        program = self.compile("ending", OVERRUN, "-w")
        for way in SEEN[:5]:
            for _ in range(4):
                found, _, _ = self.record_way(program, way)
                self.assertIn(47, [s["size"] for s in found["first_sites"]])

    def test_what_could_not_be_looked_at_is_said(self):
        program = self.compile("ending", OVERRUN, "-w")
        for way in UNSEEN:
            self.native(program, way)
            with self.subTest(way.how):
                found, text, err = self.record_way(program, way)
                self.assertEqual(found["found"], 0)
                self.assertRegex(text, r"(?m)^  no overruns found: ")
                self.assertRegex(text, r"(?m)^  not checked for overruns: the last blocks of a "
                                       r"process that ended without notice, as by SIGKILL$")
                why = ("was ended by signal %d " % -way.status if way.status < 0
                       else "ended with a system call")
                self.assertRegex(err, r"the last blocks of process \d+ were not checked for "
                                      r"overruns: it " + why)
                self.assertIn("lost: 1 process whose last blocks were not looked at for overruns", err)

    def test_what_lived_on_is_said(self):
        lived_on = "not checked for overruns: the last blocks of a process that continued"
        for seconds in 2, 8, 60:
            result = self.mleak("record", "--guard", "-d", "0.2", "-o", self.path("x.mlk"), "--", "sleep",
                                str(seconds), **self.as_user)
            self.assertEqual(result.status, 0, result.err)
            text = self.report(self.path("x.mlk"))
            if lived_on in text:
                break  # else the recording took as long as the program, as on a busy machine
        self.assertIn(lived_on, text)

    def test_a_program_sees_no_handler_that_it_did_not_set(self):
        program = self.compile("asks", ASKS, "-w")
        native = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(native.returncode, -signal.SIGUSR1)
        for options in (["--guard"], ["--backend", "preload"]):
            result = self.mleak("record", *options, "-o", self.path("x.mlk"), "--", program, **self.as_user)
            self.assertEqual(result.status, -signal.SIGUSR1)
            self.assertEqual(result.out, native.stdout.decode())


del PreloadCase
