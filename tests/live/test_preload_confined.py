"""Programs that forbid themselves system calls or the time stamp counter, with the preloaded library."""

import subprocess

from mleaktest import MLEAK_FAST, parse_folded, parse_totals
from test_preload import PreloadCase

# Each way ends with 4, by a bare system call, and leaves the blocks that its functions' names tell.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
#define ALLOWED(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
static char *volatile block;
static FRAME void before_7(void) { for (int i = 0; i < 7; i++) block = malloc(101); }
static FRAME void after_11(void) { for (int i = 0; i < 11; i++) block = malloc(103); }
static void churn(long n) { for (long i = 0; i < n; i++) free(malloc(50)); }
static void leave(void)
{
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(4) : "rcx", "r11", "memory");
	__builtin_unreachable();
}
static int filter(int by_syscall, int thread)
{
	struct sock_filter with_threads[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOWED(SYS_write), ALLOWED(SYS_mmap), ALLOWED(SYS_munmap), ALLOWED(SYS_brk),
		ALLOWED(SYS_mprotect), ALLOWED(SYS_exit_group), ALLOWED(SYS_exit),
		ALLOWED(SYS_clone3), ALLOWED(SYS_clone), ALLOWED(SYS_set_robust_list),
		ALLOWED(SYS_rseq), ALLOWED(SYS_rt_sigprocmask), ALLOWED(SYS_madvise),
		ALLOWED(SYS_execve), ALLOWED(SYS_wait4), ALLOWED(SYS_rt_sigaction),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
	struct sock_fprog f = {sizeof(with_threads) / sizeof(*with_threads), with_threads};
	if (!thread) { /* the first seven calls alone */
		with_threads[15] = with_threads[f.len - 1];
		f.len = 16;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return by_syscall ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f)
			  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f);
}
/* The second page of a file: the sixth says which. */
static int all_arguments(const char *path)
{
	static char page[4096];
	int fd = open(path, O_RDONLY);
	char *mapped = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	return pread(fd, page, 4096, 4096) == 4096 && mapped != MAP_FAILED &&
	       !memcmp(page, mapped, 4096) && !close(fd);
}
static volatile int done;
static void *run(void *arg) { after_11(); done = 1; for (;;) ; return arg; }
int main(int argc, char **argv)
{
	pthread_t t;
	char how = argv[1][0];
	__libc_free(__libc_malloc(1)); /* what the C library does at its first block */
	mallopt(M_ARENA_MAX, 1); /* a thread counts the processors otherwise */
	if (argc > 2)
		before_7();
	switch (how) {
	case 's': if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1; break;
	case 'S': if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)) return 1; break;
	case 't': if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV)) return 1; break;
	case 'f': if (filter(0, 0)) return 1; break;
	case 'F': if (filter(1, 0)) return 1; break;
	case 'T': case 'x': if (filter(0, 1)) return 1; break;
	case 'e': /* what the kernel refuses changes nothing */
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) != -1 || errno != EINVAL)
			return 1;
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT)
			return 2;
		if (prctl(PR_SET_NAME, "named") || syscall(SYS_getppid) != getppid())
			return 3;
		if (syscall(SYS_close, -1) != -1 || errno != EBADF || !all_arguments(argv[0]))
			return 5;
		break;
	case 'c': case 'C':
		if (how == 'c' ? prctl(PR_SET_TSC, PR_TSC_SIGSEGV) : filter(0, 1))
			return 1;
		if (!fork()) {
			after_11();
			leave();
		}
		wait(NULL);
		leave();
	}
	if (how == 'T') {
		pthread_create(&t, NULL, run, NULL);
		while (!done)
			;
		syscall(SYS_exit_group, 4);
	}
	if (how == 'x')
		execl("/bin/sh", "sh", "-c", "exit 4", NULL);
	after_11();
	if (argc > 2)
		churn(atol(argv[2]));
	leave();
}
"""


class ConfinedTest(PreloadCase):
    program = MLEAK_FAST
    CLOCK = "disabled its time stamp counter"
    CALLS = "turned on seccomp"

    def setUp(self):
        super().setUp()
        self.confined = self.compile("confined", PROGRAM, "-w")

    def run_it(self, *args, options=(), status=4):
        """The report's totals, blocks by function, and the messages."""
        trace = self.path("x.mlk")
        self.assertEqual(subprocess.run([self.confined, *args]).returncode, status)
        result = self.mleak("record", *self.options, *options, "-o", trace, "--", self.confined,
                            *args, **self.as_user)
        self.assertEqual(result.status, status, result.err)
        self.assert_messages(result.err)
        self.assertNotIn("the program made none", result.err)
        sums = {}
        for stack in parse_folded(self.mleak("report", "--format=folded", trace).out):
            for frame in stack.frames:
                if frame in ("before_7", "after_11"):
                    sums[frame] = sums.get(frame, 0) + stack.bytes
        return parse_totals(self.report(trace)), sums, result.err

    def test_without_the_clock_all_is_lost_and_counted(self):
        for how in "sSt":
            for more in ((), ("0",)):
                with self.subTest(how + str(more)):
                    totals, sums, err = self.run_it(how, *more)
                    self.assertEqual(totals.lost, 11)
                    self.assertEqual(sums, {"before_7": 7 * 101} if more else {})
                    self.assertIn(self.CLOCK, err)

    def test_with_a_filter_the_thread_is_recorded_without_system_calls(self):
        for how in "fF":
            for more in ((), ("0",), ("200000",)):
                with self.subTest(how + str(more)):
                    totals, sums, err = self.run_it(how, *more)
                    self.assertEqual(totals.lost, 0)
                    self.assertEqual(sums, {"before_7": 7 * 101, "after_11": 11 * 103} if more
                                     else {"after_11": 11 * 103})
                    self.assertNotIn(self.CALLS, err)

    def test_filters_and_guard_bytes_go_with_it(self):
        for options in (("-s", "100"), ("-z", "50"), ("--guard",)):
            with self.subTest(options):
                self.run_it("f", "2000", options=options)
                self.run_it("s", "0", options=options)

    def test_a_thread_that_comes_later_is_lost_and_counted(self):
        totals, sums, err = self.run_it("T", "0")
        self.assertEqual(sums, {"before_7": 7 * 101})
        self.assertEqual(totals.lost, 11)
        self.assertIn(self.CALLS, err)

    def test_the_next_program_is_lost_and_counted(self):
        _, _, err = self.run_it("x", "0", status=-31)
        self.assertIn(self.CALLS, err)

    def test_what_the_kernel_refuses_changes_nothing(self):
        totals, sums, err = self.run_it("e", "0")
        self.assertEqual(totals.lost, 0)
        self.assertEqual(sums, {"before_7": 7 * 101, "after_11": 11 * 103})
        self.assertNotIn(self.CALLS, err)
        self.assertNotIn(self.CLOCK, err)

    def test_children_that_cannot_come_are_counted(self):
        for how in "cC":
            with self.subTest(how):
                totals, sums, _ = self.run_it(how, "0", options=("--follow",))
                self.assertEqual(sums, {"before_7": 7 * 101})
                self.assertGreater(totals.lost, 0)


del PreloadCase
