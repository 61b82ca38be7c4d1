"""Signal handlers that interrupt the preloaded library while it writes an event: after each of its
instructions, by the processor's trap flag.  They make events of their own, or leave it for good by a
jump."""

from mleaktest import MLEAK_FAST, parse_folded, parse_totals
from test_preload import PreloadCase

COMMON = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
static unsigned long lo, hi; /* the library's code */
static unsigned long steps, jump_at, only_at, mappings, handled;
static sigjmp_buf out;
void *volatile kept;

static void find_library(void)
{
	char line[4096], mode[5];
	unsigned long a, b;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &a, &b, mode) == 3 && mode[2] == 'x' &&
		    strstr(line, "libmleak-preload.so"))
			lo = a, hi = b;
	fclose(maps);
}
static void on_step(int sig, siginfo_t *info, void *context)
{
	unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (pc < lo || pc >= hi)
		return;
	steps++;
	for (unsigned long i = 0; i < mappings && (!only_at || steps == only_at); i++) {
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
		handled++;
	}
	if (steps == jump_at)
		siglongjmp(out, 1);
}
static int armed;
static inline void trap(int on)
{
	if (!armed)
		return;
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp" : : : "cc", "memory");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andl $~0x100, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp" : : : "cc", "memory");
}
"""

STEPS = COMMON + r"""
FRAME void bottom(int size, int stepped)
{
	if (stepped)
		trap(1);
	kept = malloc(size);
	if (stepped)
		free(kept);
	trap(0);
}
FRAME int chain(int n, int size, int stepped)
{
	if (n)
		n += chain(n - 1, size, stepped);
	else
		bottom(size, stepped);
	__asm__ volatile("" : : : "memory");
	return n;
}
/* After an event that was left comes one with the same stack and registers, which are not those of
   the events before: the frames of these two are found by rbp. */
FRAME int leave(unsigned long k)
{
	volatile char *room = alloca(k % 16 * 16 + 16);
	int left = sigsetjmp(out, 1);
	room[0] = 1;
	if (!left)
		chain(k % 3, 0, 1);
	chain(k % 3, 67, 0);
	room[0] = 2;
	return left;
}
FRAME int shift(unsigned long k)
{
	volatile char *room = alloca(k % 7 * 32 + 16);
	int left;
	room[0] = 1;
	left = leave(k);
	room[0] = 2;
	return left;
}
int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t alt = {.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				     -1, 0), .ss_size = 65536};
	unsigned long pairs = 0, jumps = 0;
	setvbuf(stdout, NULL, _IONBF, 0);
	find_library();
	if (argv[1][1] == 'w')
		alt.ss_sp = alloca(alt.ss_size = 16384);
	if (argv[1][1])
		sigaltstack(&alt, NULL);
	sigaction(SIGTRAP, &act, NULL);
	armed = argv[1][0] != 'n';
	if (argv[1][0] != 'j') {
		for (; pairs < 20; pairs++) {
			mappings = pairs % 3 + 1;
			chain(2, 10 + pairs % 7 * 100, 1);
		}
		chain(4, 67, 0);
		printf("%lu %lu %lu\n", steps, handled, pairs);
		return 0;
	}
	do {
		steps = 0;
		jump_at = atoi(argv[2]) + 5 * ++pairs; /* a trap takes long in a virtual machine */
		jumps += shift(pairs);
	} while (jumps == pairs);
	printf("%lu %lu %lu\n", steps, jumps, pairs);
	return 0;
}
"""

# Where a jump leaves an event that has begun, after malloc returned.
JUMP = COMMON + r"""
static unsigned long jumps;
FRAME void jump(int within, int room)
{
	volatile char *below = alloca(room);
	below[0] = 1;
	steps = mappings = 0;
	jump_at = within;
	armed = 1;
	if (!sigsetjmp(out, 1)) {
		trap(1);
		kept = malloc(0);
		trap(0);
	} else {
		jumps++;
	}
	steps = jump_at = 0;
	below[0] = 2;
}
FRAME void allocate(int n)
{
	volatile char room[256];
	room[0] = 1;
	if (n)
		allocate(n - 1);
	else
		kept = malloc(61);
	room[1] = 2;
}
static void prepare(void)
{
	struct sigaction act = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	find_library();
	sigaction(SIGTRAP, &act, NULL);
	kept = malloc(1);
}
"""

# What was left stands far below what comes next, and so does a handler that comes while it is given up.
FAR = JUMP + r"""
FRAME void shallow(void)
{
	trap(1);
	kept = malloc(61);
	trap(0);
}
int main(void)
{
	prepare();
	for (int i = 0; i < 120; i++) {
		only_at = 100 + i;
		jump(150, 40000);
		mappings = 1;
		shallow();
	}
	printf("%lu %lu\n", jumps, handled);
	return 0;
}
"""

# All that comes next stands below what was left, while another thread needs the recorder.
ABOVE = JUMP + r"""
static void *run(void *arg)
{
	for (int i = 0; i < 100000; i++)
		free(malloc(31));
	return arg;
}
int main(void)
{
	pthread_t t;
	prepare();
	jump(500, 16); /* when it has begun to write */
	for (int i = 0; i < 1000; i++)
		allocate(9);
	pthread_create(&t, NULL, run, NULL);
	pthread_join(t, NULL);
	printf("%lu\n", jumps);
	return 0;
}
"""

FORKS = JUMP + r"""
int main(void)
{
	prepare();
	jump(150, 40000);
	if (!fork()) {
		for (int i = 0; i < 1000; i++)
			allocate(1);
		_exit(0);
	}
	wait(NULL);
	printf("%lu\n", jumps);
	return 0;
}
"""

# A time limit that ends what the library waits for in dlopen(): a look of the recorder at what was mapped.
LIMIT = JUMP + r"""
static void on_alarm(int sig)
{
	siglongjmp(out, 1);
}
int main(int argc, char **argv)
{
	struct itimerval limit = {{0, 0}, {0, 300000}};
	signal(SIGALRM, on_alarm);
	kept = malloc(1);
	kill(getppid(), SIGSTOP);
	if (!sigsetjmp(out, 1)) {
		setitimer(ITIMER_REAL, &limit, NULL);
		dlopen(argv[1], RTLD_NOW);
	}
	kill(getppid(), SIGCONT);
	for (int i = 0; i < 1000; i++)
		allocate(1);
	return 0;
}
"""


class StepTest(PreloadCase):
    program = MLEAK_FAST

    def leaks(self, trace, function):
        """Call path behind main() of what @function allocated, to bytes."""
        leaks = {}
        folded = self.mleak("report", "--format=folded", trace)
        self.assertEqual(folded.status, 0)
        for stack in parse_folded(folded.out):
            if stack.frames[-1] == function:
                self.assertIn("_start", stack.frames[:2])  # behind the process, where there are two
                path = tuple(stack.frames[stack.frames.index("main") + 1:])
                leaks[path] = leaks.get(path, 0) + stack.bytes
        return leaks

    def run_steps(self, *how):
        """Returns the numbers that the program printed, its totals, and its leaks: call path behind
        main() to bytes."""
        trace, out = self.record(self.compile("steps", STEPS), *how)
        totals = parse_totals(self.report(trace))
        leaks = self.leaks(trace, "bottom")
        return [int(n) for n in out.split()], totals, leaks

    def check_handlers(self, stack):
        """Returns the totals of the recording that was interrupted."""
        (steps, handled, pairs), totals, leaks = self.run_steps("h" + stack)
        (_, none, as_many), plain, same = self.run_steps("n" + stack)
        self.assertGreater(steps, 5000)
        self.assertEqual((none, as_many), (0, pairs))
        self.assertEqual(leaks, {("chain",) * 5 + ("bottom",): 67})
        self.assertEqual(same, leaks)
        self.assertEqual((totals.lost, plain.lost), (0, 0))
        self.assertEqual(totals.allocations.blocks, plain.allocations.blocks + handled)
        self.assertEqual(totals.frees.blocks, plain.frees.blocks + handled)
        return totals

    def test_a_handler_after_each_instruction_loses_and_spoils_nothing(self):
        totals = self.check_handlers("")
        self.assertEqual(totals.complete, totals.of)

    def test_a_handler_on_a_stack_of_its_own_loses_and_spoils_nothing(self):
        self.check_handlers("a")

    def test_a_handler_on_a_part_of_the_threads_stack_loses_and_spoils_nothing(self):
        self.check_handlers("w")

    def check_jumps(self, *how):
        (_, jumps, pairs), totals, leaks = self.run_steps(*how)
        self.assertGreater(jumps, 100)
        self.assertEqual(totals.complete, totals.of)
        self.assertEqual(leaks, {("shift", "leave") + ("chain",) * (depth + 1) + ("bottom",):
                                 67 * sum(k % 3 == depth for k in range(1, pairs + 1))
                                 for depth in range(3)})
        # what malloc had returned, and nobody was told of
        self.assertGreater(totals.lost, 0)
        self.assertLess(totals.lost, jumps)

    def test_a_jump_out_after_an_instruction_spoils_nothing(self):
        self.check_jumps("j", "-4")

    def test_a_jump_from_a_stack_of_its_own_spoils_nothing(self):
        self.check_jumps("ja", "-2")

    def run_jumps(self, source, *args, options=()):
        trace, out = self.record(self.compile("jumps", source), *args, options=options)
        return trace, parse_totals(self.report(trace)), [int(n) for n in out.split()]

    def test_a_handler_while_what_was_left_is_given_up_spoils_nothing(self):
        trace, totals, (jumps, handled) = self.run_jumps(FAR)
        self.assertEqual((jumps, handled), (120, 120))
        self.assertEqual(totals.lost, jumps)
        self.assertEqual(self.leaks(trace, "shallow"), {("shallow",): 120 * 61})
        self.assertEqual(totals.complete, totals.of)

    def test_what_nobody_can_give_up_holds_nobody_up_for_good(self):
        trace, totals, (jumps,) = self.run_jumps(ABOVE)
        self.assertEqual(jumps, 1)
        self.assertEqual(self.leaks(trace, "allocate"), {("allocate",) * 10: 1000 * 61})
        self.assertLessEqual(totals.lost, 1)
        self.assertGreater(totals.allocations.blocks, 101000)

    def test_a_fork_after_a_jump_is_followed(self):
        trace, totals, (jumps,) = self.run_jumps(FORKS, options=("--follow",))
        self.assertEqual((jumps, totals.lost), (1, 1))
        self.assertEqual(self.leaks(trace, "allocate"), {("allocate",) * 2: 1000 * 61})

    def test_a_jump_out_of_dlopen_loses_nothing_after_it(self):
        trace, _, _ = self.run_jumps(LIMIT, "libm.so.6")
        self.assertEqual(self.leaks(trace, "allocate"), {("allocate",) * 2: 1000 * 61})
