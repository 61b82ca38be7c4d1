"""What a process may do while the preloaded library records it."""

import os
import re

from mleaktest import MLEAK_FAST, parse_folded, parse_totals
from test_preload import PreloadCase


HEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
void *volatile kept[4096];
static FRAME void leak(int n, int size)
{
	for (int i = 0; i < n; i++)
		kept[i % 4096] = malloc(size);
}
"""

FORK = HEAD + r"""
int main(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		leak(1, 101);
		pid_t pid = argv[1][0] == 'f' ? fork() : (pid_t)syscall(SYS_fork);
		if (pid == 0) {
			leak(50, 7); /* the child's own */
			free(kept[0]);
			_exit(getenv("LD_PRELOAD") || getenv("MLEAK_PRELOAD") ? 9 : 0);
		}
		int status;
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 0;
}
"""

VFORK = HEAD + r"""
int main(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		leak(1, 101);
		pid_t pid = vfork();
		if (pid == 0) {
			void *p = malloc(7);
			free(p);
			char *args[] = {"sh", "-c", "test -z \"$LD_PRELOAD$MLEAK_PRELOAD\"", NULL};
			execv("/bin/sh", args);
			_exit(9);
		}
		int status;
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
		leak(1, 103);
	}
	return system("test -z \"$LD_PRELOAD$MLEAK_PRELOAD\"") ? 2 : 0;
}
"""

EXEC = HEAD + r"""
int main(int argc, char **argv)
{
	leak(3, 101);
	if (argc < 2)
		return 0;
	execl("/nowhere", "nowhere", NULL);
	leak(2, 103);
	if (argv[1][0] == 'l')
		execlp(argv[0], argv[0], NULL);
	if (argv[1][0] == 'e')
		execle(argv[0], argv[0], NULL, (char *[]){"A=b", NULL});
	char *args[] = {argv[0], NULL};
	execvp(argv[0], args);
	return 1;
}
"""

# Handlers allocate while the main program does; by mmap's blocks, for malloc is not reentrant.
SIGNALS = HEAD + r"""
static volatile unsigned long handled;
static void handler(int sig)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 4096);
	handled++;
}
int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
	timer_t timer;
	if (argc > 1)
		sigaltstack(&alt, NULL);
	sigaction(SIGALRM, &act, NULL);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	struct itimerspec every = {{0, 50000}, {0, 50000}};
	timer_settime(timer, 0, &every, NULL);
	unsigned long n = 0;
	while (handled < 3000) {
		free(malloc(10 + n % 100));
		n++;
	}
	timer_delete(timer);
	printf("counted: %lu\n", n + handled + 1);
	fflush(NULL);
	_exit(0);
}
"""

THREADS = HEAD + r"""
static FRAME void *run(void *arg)
{
	char room[64];
	memset(room, 1, sizeof(room));
	for (int i = 0; i < 10; i++)
		free(malloc(31));
	leak(1, 107);
	__asm__ volatile("" : : "r"(room) : "memory");
	return arg;
}
int main(int argc, char **argv)
{
	int small = argc > 1;
	static char stacks[8][32768] __attribute__((aligned(4096)));
	for (int round = 0; round < 150; round++) {
		pthread_t t[8];
		for (int i = 0; i < 8; i++) {
			pthread_attr_t attr;
			pthread_attr_init(&attr);
			if (small)
				pthread_attr_setstack(&attr, stacks[i], sizeof(stacks[i]));
			if (pthread_create(&t[i], &attr, run, NULL))
				return 1;
		}
		for (int i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
	}
	return 0;
}
"""

COROUTINES = HEAD + r"""
static ucontext_t home, other;
static FRAME void in_coroutine(void)
{
	for (int i = 0; i < 23; i++) {
		leak(1, 109);
		swapcontext(&other, &home);
	}
}
int main(void)
{
	/* The stack ends where nothing is mapped. */
	char *memory = mmap(NULL, 3 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(memory + 65536, 65536, PROT_READ | PROT_WRITE);
	getcontext(&other);
	other.uc_stack.ss_sp = memory + 65536;
	other.uc_stack.ss_size = 65536;
	other.uc_link = &home;
	makecontext(&other, in_coroutine, 0);
	for (int i = 0; i < 23; i++) {
		swapcontext(&home, &other);
		leak(1, 113);
	}
	return 0;
}
"""


LATE = HEAD + r"""
static pthread_key_t key;
static void at_thread_end(void *p)
{
	free(p);
	leak(1, 127);
}
static __attribute__((destructor)) void at_exit_(void) { leak(1, 131); }
static __attribute__((constructor)) void at_start(void) { leak(1, 137); }
static void *run(void *arg) { pthread_setspecific(key, malloc(139)); return arg; }
int main(void)
{
	pthread_t t;
	pthread_key_create(&key, at_thread_end);
	pthread_create(&t, NULL, run, NULL);
	pthread_join(t, NULL);
	return 0;
}
"""


# A plugin whose malloc is the C library's, whatever was preloaded.
DEEPBIND = HEAD + r"""
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
	void *(*give)(int) = (void *(*)(int))dlsym(lib, "give");
	void (*take)(void *) = (void (*)(void *))dlsym(lib, "take");
	for (int i = 0; i < 50; i++) {
		free(give(31)); /* allocated unseen */
		take(malloc(33)); /* freed unseen */
		free(malloc(35));
	}
	leak(3, 149);
	return 0;
}
"""
DEEPBOUND = r"""
#include <stdlib.h>
void *give(int n) { return malloc(n); }
void take(void *p) { free(p); }
"""

OWN_MALLOC = r"""
#include <stddef.h>
#include <unistd.h>
static char room[1 << 20];
static size_t used;
void *malloc(size_t n) { used += (n + 31) & ~15ul; return room + used - ((n + 15) & ~15ul); }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { (void)p; return malloc(n); }
int main(void) { for (int i = 0; i < 99; i++) free(malloc(10)); return 0; }
"""

MAPPED = HEAD + r"""
static FRAME void leak_pages(void)
{
	for (int i = 0; i < 5; i++)
		kept[i] = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static FRAME void leak_grown(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = mremap(p, 4096, 7 * 4096, MREMAP_MAYMOVE);
	kept[9] = p;
}
int main(void)
{
	char *p = mmap(NULL, 8 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 8 * 4096);
	leak_pages();
	leak_grown();
	/* A file's pages are the file's, wherever they are moved. */
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 0);
	p = mremap(p, 4096, 3 * 4096, MREMAP_MAYMOVE);
	kept[10] = mremap(p, 3 * 4096, 200 * 4096, MREMAP_MAYMOVE);
	return p == MAP_FAILED || kept[10] == MAP_FAILED;
}
"""


class LifeTest(PreloadCase):
    def sums(self, trace, size):
        """Outstanding bytes of blocks leaked by leak() of @size, over all stacks that end there."""
        folded = self.report(trace, "--format=folded", "--size", "%d-%d" % (size, size))
        return sum(s.bytes for s in parse_folded(folded))

    def totals(self, trace):
        return parse_totals(self.report(trace))

    def outstanding(self, trace):
        return self.totals(trace).outstanding

    def test_child_of_fork_is_not_recorded_and_runs_on(self):
        program = self.compile("fork", FORK)
        for how in ("fork", "raw"):
            trace, _ = self.record(program, how)
            totals = self.totals(trace)
            self.assertEqual((totals.outstanding.blocks, totals.outstanding.bytes, totals.lost),
                             (20, 20 * 101, 0))

    def test_child_of_vfork_does_not_write_and_its_programs_are_clean(self):
        trace, _ = self.record(self.compile("vfork", VFORK))
        totals = self.totals(trace)
        self.assertEqual((totals.outstanding, totals.lost), ((40, 20 * 204), 0))

    def test_the_program_that_exec_starts_is_recorded(self):
        program = self.compile("exec", EXEC)
        for how in ("list", "env", "vector"):
            with self.subTest(how):
                trace, _ = self.record(program, how)
                text = self.report(trace)
                self.assertRegex(text, r"gone at exec +5 blocks +509 bytes")
                self.assertEqual(self.outstanding(trace), (3, 303))
                self.assertEqual(self.totals(trace).lost, 0)

    def test_a_wrapper_script_ends_in_the_program(self):
        program = self.compile("exec", EXEC)
        trace, _ = self.record("sh", "-c", "exec env A=b '%s'" % program)
        self.assertEqual(self.outstanding(trace), (3, 303))

    def test_an_exec_that_the_library_cannot_follow_is_counted(self):
        static = self.compile("static", EXEC, "-static")
        result = self.mleak("record", "--backend", "preload", "-o", "x.mlk", "--", "sh", "-c",
                            "exec " + static, **self.as_user)
        self.assertEqual(result.status, 0)
        self.assertRegex(result.err, "lost: 1 ")

    def test_handlers_that_interrupt_the_library_lose_and_spoil_nothing(self):
        program = self.compile("signals", SIGNALS)
        for options in ((), ("alternate stack",)):
            trace, out = self.record(program, *options)
            totals = self.totals(trace)
            counted = int(re.search(r"counted: (\d+)", out).group(1))
            # One handler may come after the count; stdout's buffer is one block more.
            self.assertIn(totals.allocations.blocks - counted, (-1, 0, 1, 2) if options else
                          (0, 1, 2))
            self.assertEqual(totals.lost, 0)

    def test_threads_that_come_and_go(self):
        program = self.compile("threads", THREADS)
        for options in ((), ("small stacks",)):
            trace, _ = self.record(program, *options)
            text = self.report(trace)
            totals = self.totals(trace)
            self.assertEqual(totals.lost, 0, text)
            self.assertEqual(totals.complete, totals.of)
            stacks = parse_folded(self.report(trace, "--format=folded"))
            self.assertEqual(sum(s.bytes for s in stacks if s.frames[-1] == "leak"), 1200 * 107)

    def test_a_stack_that_is_not_the_threads_gives_its_first_slice(self):
        trace, _ = self.record(self.compile("coroutines", COROUTINES))
        stacks = parse_folded(self.report(trace, "--format=folded"))
        by_path = {tuple(s.frames[-2:]): s.bytes for s in stacks}
        self.assertEqual(by_path[("in_coroutine", "leak")], 23 * 109)
        self.assertEqual(by_path[("main", "leak")], 23 * 113)

    def test_before_main_after_it_and_at_a_threads_end(self):
        trace, _ = self.record(self.compile("late", LATE))
        stacks = parse_folded(self.report(trace, "--format=folded"))
        by_path = {tuple(s.frames[-2:]): s.bytes for s in stacks}
        self.assertEqual(by_path[("at_start", "leak")], 137)
        self.assertEqual(by_path[("at_exit_", "leak")], 131)
        self.assertEqual(by_path[("at_thread_end", "leak")], 127)
        self.assertNotIn("run", [s.frames[-1] for s in stacks])


class AllocatorTest(PreloadCase):
    program = MLEAK_FAST  # it is run with another malloc

    def test_allocators_that_are_libraries(self):
        program = self.compile("late", LATE)
        for name in ("jemalloc.so.2", "tcmalloc_minimal.so.4", "mimalloc.so.2.0"):
            library = "/usr/lib/x86_64-linux-gnu/lib" + name
            if not os.path.exists(library):
                continue
            with self.subTest(name):
                trace, _ = self.record(program, env=dict(os.environ, LD_PRELOAD=library))
                stacks = parse_folded(self.report(trace, "--format=folded"))
                by_path = {tuple(s.frames[-2:]): s.bytes for s in stacks}
                self.assertEqual(by_path[("at_start", "leak")], 137)
                self.assertEqual(by_path[("at_thread_end", "leak")], 127)

    def test_a_plugin_bound_to_the_c_librarys_malloc(self):
        plugin = self.compile("plugin.so", DEEPBOUND, "-shared", "-fPIC")
        trace, _ = self.record(self.compile("deepbind", DEEPBIND), plugin)
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual([s.bytes for s in stacks if s.frames[-1] == "leak"], [3 * 149])

    def test_a_program_with_a_malloc_of_its_own_says_that_nothing_was_seen(self):
        program = self.compile("own", OWN_MALLOC)
        result = self.mleak("record", "--backend", "preload", "-o", "x.mlk", "--", program,
                            **self.as_user)
        self.assertEqual(result.status, 0)
        self.assertIn("no call of malloc or free was recorded", result.err)

    def test_mappings(self):
        trace, _ = self.record(self.compile("mapped", MAPPED))
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual({s.frames[-1]: s.bytes for s in stacks},
                         {"leak_pages": 15 * 4096, "leak_grown": 7 * 4096})


class RefuseTest(PreloadCase):
    def refused(self, *args):
        result = self.mleak("record", "--backend", "preload", "-o", "x.mlk", *args, **self.as_user)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        return result.err

    def test_running_process(self):
        self.assertIn("attach", self.refused("-p", str(os.getpid())))

    def test_static_program(self):
        program = self.compile("static", EXEC, "-static")
        self.assertIn("statically linked", self.refused("--", program))

    def test_program_of_another_c_library(self):
        program = self.compile("musl", EXEC, compiler="musl-gcc")
        self.assertIn("not glibc", self.refused("--", program))

    def test_set_user_id_program(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to make one")
        program = self.compile("setuid", EXEC)
        os.chmod(program, 0o4755)
        self.assertIn("set-user-id", self.refused("--", program))

    def test_unknown_command(self):
        result = self.mleak("record", "--backend", "preload", "--", "no-such-command",
                            env={"PATH": "/bin:/usr/bin"}, **self.as_user)
        self.assertEqual(result.status, 127)
        self.assert_one_message(result.err, "no-such-command")


del PreloadCase
