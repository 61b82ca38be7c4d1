"""What a program does while code that was put into it records: it forks, loads and unloads libraries, begins and
ends threads, takes signals, and jumps between stacks."""

import os
import subprocess

from injecttest import InjectCase, State, ours_in
from mleaktest import descendants, ends_in, parse_folded, parse_totals, read_line, wait_until

# Each line on stdin is a letter, and is answered by "done"; what leaks is in the functions' names.
PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
#define END __asm__ volatile("" : : : "memory")
enum { STACK = 65536 };
static void *volatile kept;
static char *program;

FRAME static void must(int right)
{
	if (!right)
		_exit(97);
}

FRAME static void child_allocates(void)
{
	for (int i = 0; i < 20000; i++)
		kept = malloc(101);
	END;
}

FRAME static void by_fork(int execs)
{
	int status;
	pid_t pid = fork();
	if (!pid) {
		child_allocates();
		if (execs)
			execl(program, program, "exec", (char *)0);
		_exit(execs ? 96 : 0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	END;
}

FRAME static void parent_7(void) { for (int i = 0; i < 7; i++) kept = malloc(103); END; }

FRAME static void by_dlopen(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	must(library != NULL);
	void *(*leak)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_leaks");
	must(leak != NULL);
	for (int i = 0; i < 11; i++)
		kept = leak(107);
	must(!dlclose(library));
	END;
}

FRAME static void *thread_leaks(void *arg)
{
	for (int i = 0; i < 10; i++)
		free(malloc(100));
	kept = malloc(109);
	END;
	return arg;
}

FRAME static void by_threads(void)
{
	for (int i = 0; i < 200; i++) {
		pthread_t t[4];
		for (int k = 0; k < 4; k++)
			must(!pthread_create(&t[k], NULL, thread_leaks, NULL));
		for (int k = 0; k < 4; k++)
			must(!pthread_join(t[k], NULL));
	}
	END;
}

static sigjmp_buf back;
static void jump_out(int sig) { (void)sig; siglongjmp(back, 1); }
FRAME static void handler_leaks(int sig) { (void)sig; kept = malloc(113); END; }

FRAME static void by_signals(int on_stack)
{
	const stack_t there = {.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = STACK};
	struct sigaction a = {.sa_handler = handler_leaks, .sa_flags = on_stack ? SA_ONSTACK : 0};
	must(!sigaltstack(&there, NULL) && !sigaction(SIGUSR1, &a, NULL));
	for (int i = 0; i < 13; i++)
		raise(SIGUSR1);
	END;
}

/* Out of the handler of a signal that comes while nothing but a sleep goes on, and out of malloc(0)'s
 * callers, never out of the allocator. */
FRAME static void by_jumps(void)
{
	struct sigaction a = {.sa_handler = jump_out};
	must(!sigaction(SIGALRM, &a, NULL));
	for (volatile int i = 0; i < 17; i++) {
		if (!sigsetjmp(back, 1)) {
			ualarm(1000, 0);
			for (;;)
				pause();
		}
		kept = malloc(127);
	}
	END;
}

#ifdef __GLIBC__
static ucontext_t main_context, coroutines[3];
FRAME static void coroutine_leaks(int n)
{
	for (int i = 0; i < 19; i++) {
		kept = malloc(131);
		free(malloc(50));
		swapcontext(&coroutines[n], &main_context);
	}
	END;
}

FRAME static void by_coroutines(void)
{
	for (int n = 0; n < 3; n++) {
		getcontext(&coroutines[n]);
		coroutines[n].uc_stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		coroutines[n].uc_stack.ss_size = STACK;
		coroutines[n].uc_link = &main_context;
		makecontext(&coroutines[n], (void (*)(void))coroutine_leaks, 1, n);
	}
	for (int i = 0; i < 19; i++)
		for (int n = 0; n < 3; n++)
			swapcontext(&main_context, &coroutines[n]);
	END;
}

#else
static void by_coroutines(void) {}
#endif

/* The child shares the memory until it is another program. */
FRAME static void by_spawn(void)
{
	char *argv[] = {program, "exec", NULL};
	int status;
	pid_t pid;
	for (int i = 0; i < 5; i++)
		must(!posix_spawn(&pid, program, NULL, NULL, argv, environ) && waitpid(pid, &status, 0) == pid && !status);
	END;
}

FRAME static void serve(char c, char **argv)
{
	switch (c) {
	case 'f': by_fork(0); parent_7(); break;
	case 'x': by_fork(1); parent_7(); break;
	case 'v': by_spawn(); parent_7(); break;
	case 'd': by_dlopen(argv[1]); break;
	case 't': by_threads(); break;
	case 's': by_signals(0); break;
	case 'a': by_signals(1); break;
	case 'j': by_jumps(); break;
	case 'c': by_coroutines(); break;
	default: _exit(95);
	}
	END;
}

int main(int argc, char **argv)
{
	char c;
	program = argv[0];
	if (argc > 1 && !strcmp(argv[1], "exec")) {
		child_allocates();
		return 0;
	}
	must(write(1, "ready\n", 6) == 6);
	while (read(0, &c, 1) == 1) {
		serve(c, argv);
		must(write(1, "done\n", 5) == 5);
	}
	return 0;
}
"""

PLUGIN = r"""
#include <stdlib.h>
__attribute__((noinline, noipa)) static void *plugin_inner(size_t n)
{
	void *block = malloc(n);
	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
__attribute__((noinline, noipa)) void *plugin_leaks(size_t n)
{
	void *block = plugin_inner(n);
	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
"""


class LifeTest(InjectCase):
    def check(self, command, expected, kind=(), compiler="gcc"):
        """Let the program do @command while it is recorded; @expected: bytes by the ends of stacks."""
        program = self.build("program", PROGRAM, *kind, "-ldl", compiler=compiler)
        plugin = self.build("plugin.so", PLUGIN, "-shared", "-fPIC")
        process = self.spawn([program, plugin], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        state = State(process.pid)
        mleak = self.attach(process.pid)
        process.stdin.write(command.encode())
        self.assertEqual(read_line(process), "done")
        self.detach(mleak)
        self.assertEqual(ours_in(process.pid), [])
        self.assertTrue(state.files <= State(process.pid).files)
        self.assert_code(State(process.pid), state)
        process.stdin.write(command.encode())  # it goes on
        self.assertEqual(read_line(process), "done")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)
        folded = self.report(self.path("x.mlk"), "--format=folded")
        self.assertEqual(parse_totals(self.report(self.path("x.mlk"))).lost, 0)
        for path, total in expected.items():
            self.assertEqual(sum(s.bytes for s in parse_folded(folded) if ends_in(s.frames, path.split(";"))), total,
                             "%s in\n%s" % (path, folded))
        return folded

    def assert_code(self, now, before):
        for mapping, code in before.code.items():
            self.assertTrue(now.code.get(mapping) == code, "code of %s is not what it was" % (mapping,))

    def test_fork(self):
        folded = self.check("f", {"main;serve;parent_7": 7 * 103})
        self.assertNotIn("child_allocates", folded)

    def test_fork_static(self):
        folded = self.check("f", {"main;serve;parent_7": 7 * 103}, kind=["-static"])
        self.assertNotIn("child_allocates", folded)

    def test_fork_musl(self):
        folded = self.check("f", {"main;serve;parent_7": 7 * 103}, compiler="musl-gcc")
        self.assertNotIn("child_allocates", folded)

    def test_fork_and_exec(self):
        folded = self.check("x", {"main;serve;parent_7": 7 * 103})
        self.assertNotIn("child_allocates", folded)

    def test_spawn(self):
        folded = self.check("v", {"main;serve;parent_7": 7 * 103})
        self.assertNotIn("child_allocates", folded)

    def test_dlopen(self):
        self.check("d", {"main;serve;by_dlopen;plugin_leaks;plugin_inner": 11 * 107})

    def test_threads(self):
        self.check("t", {"thread_leaks": 800 * 109})

    def test_signals(self):
        self.check("s", {"handler_leaks": 13 * 113})

    def test_signals_on_a_stack_of_their_own(self):
        self.check("a", {"handler_leaks": 13 * 113})

    def test_jumps_out_of_handlers(self):
        self.check("j", {"main;serve;by_jumps": 17 * 127})

    def test_coroutines(self):
        self.check("c", {"coroutine_leaks": 3 * 19 * 131})

    def test_fork_while_it_is_left(self):
        """A child that is born while it is recorded goes on when it is not any more, or its recorder is killed."""
        program = self.build("program", PROGRAM.replace("20000; i++)\n", "20000; i++, usleep(20))\n"), "-ldl")
        process = self.spawn([program], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        for kill in False, True:
            with self.subTest(kill=kill):
                mleak = self.attach(process.pid)
                process.stdin.write(b"f")
                wait_until(lambda: descendants(process.pid), "there is no child")
                if kill:
                    mleak.kill()
                    mleak.wait()
                else:
                    self.detach(mleak)
                self.assertNotEqual(descendants(process.pid), [])
                self.assertEqual(read_line(process), "done")
        self.record_for(process.pid, "1ms")
        self.assertEqual(ours_in(process.pid), [])
