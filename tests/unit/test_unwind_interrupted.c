/* test_unwind_interrupted.c - what a signal interrupted is found as libgcc finds it. */
#include <pthread.h>
#include <signal.h>

#include "unwind_live.h"

#define STACK_BYTES (256u << 10)

/* A leaf that touches no register, called by a function that finds its caller by rbx. */
void trap_below_rbx(void);
__asm__(".text\n"
	".type trap_below_rbx, @function\n"
	"trap_below_rbx:\n\t"
	".cfi_startproc\n\t"
	"pushq %rbx\n\t"
	".cfi_def_cfa_offset 16\n\t"
	".cfi_offset %rbx, -16\n\t"
	"movq %rsp, %rbx\n\t"
	".cfi_def_cfa %rbx, 16\n\t"
	"subq $200, %rsp\n\t"
	"andq $-64, %rsp\n\t"
	"call trap_leaf\n\t"
	"movq %rbx, %rsp\n\t"
	".cfi_def_cfa %rsp, 16\n\t"
	"popq %rbx\n\t"
	".cfi_def_cfa_offset 8\n\t"
	".cfi_restore %rbx\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size trap_below_rbx, . - trap_below_rbx\n"
	".type trap_leaf, @function\n"
	"trap_leaf:\n\t"
	".cfi_startproc\n\t"
	"int3\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size trap_leaf, . - trap_leaf\n");

/* The CFI of glibc's _L_lock_* up to 2.19, which nothing calls: it is jumped to, and back.  Its
 * frame goes on at the instruction behind its call, as if that were under way, though 128 bytes
 * lower; and from there to where it will jump.  So the CFA is not above rsp, and the return address
 * is reckoned from rip: ROW(what is added).  A row for each instruction, a trap before each. */
#define ROW(offset, more)                    \
	".cfi_def_cfa %rsp, " #offset "\n\t" \
	".cfi_escape 0x16, 0x10, 0x02, 0x80, " #more "\n\t"
void trap_in_lock(void (*fn)(void));
__asm__(".text\n"
	".type trap_in_lock, @function\n"
	"trap_in_lock:\n\t"
	".cfi_startproc\n\t"
	"pushq %rbx\n\t"
	".cfi_def_cfa_offset 16\n\t"
	".cfi_offset %rbx, -16\n\t"
	"jmp 1f\n"
	"0:\t" /* 3 bytes from the beginning */
	"popq %rbx\n\t"
	"ret\n"
	"1:\t"
	"int3\n\t"
	".cfi_endproc\n"
	".size trap_in_lock, . - trap_in_lock\n"
	".type lock_stub, @function\n"
	"lock_stub:\n\t" /* 6 */
	".cfi_startproc\n\t" ROW(-128, 11) "int3\n\t" ROW(
		-128, 10) ".byte 0x48, 0x81, 0xec, 0x80, 0, 0, 0\n\t" /* subq $128, %rsp */
	ROW(0, 3) "int3\n\t" ROW(0, 2) ".byte 0xff\n\t" /* call *%rdi, the row of whose last byte is
							   that of what is behind it */
	ROW(128, 0x72) ".byte 0xd7\n\t"
		       ".byte 0x48, 0x83, 0xec, 0x80\n\t" /* 17: addq $128, %rsp */
	ROW(-128, 0x7c) "int3\n\t" ROW(-128, 0x7b) "jmp 0b\n\t"
						   ".cfi_endproc\n"
						   ".size lock_stub, . - lock_stub\n");

static struct snapshot taken;

static void on_trap(int number)
{
	(void)number;
	live_snapshot(live, &taken);
}

#define NR_TRAPS 6

static struct snapshot traps[NR_TRAPS];
static size_t nr_traps;

static void on_each_trap(int number)
{
	(void)number;
	if (nr_traps < NR_TRAPS)
		live_snapshot(live, &traps[nr_traps++]);
}

static void trap(void)
{
	__asm__ volatile("int3");
}

static void handle(int flags)
{
	const struct sigaction action = {.sa_handler = on_trap, .sa_flags = flags};

	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
}

/* Frame 0 is live_snapshot(), where libgcc was called a little later. */
static void check_frames(const struct dwunw_frame *frames, size_t nr)
{
	assert_true(nr <= taken.nr_pc);
	for (size_t i = 1; i < nr; i++)
		assert_int_equal(frames[i].pc, taken.pc[i]);
}

/* Nr of the frame that the signal interrupted; it has to be there. */
static size_t interrupted_frame(const struct dwunw_frame *frames, size_t nr)
{
	size_t i = 0;

	while (i < nr && !(frames[i].flags & DWUNW_FRAME_FLAG_SIGNAL))
		i++;
	assert_true(i < nr);
	return i + 1;
}

static void leaf_hands_on_a_register_without_a_rule(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct dwunw_stack stack;
	enum dwunw_status status;
	int nr;

	(void)state;
	handle(0);
	trap_below_rbx();
	stack = live_stack(&taken);
	nr = live_capture(live, &taken, &stack, frames, &status);
	check_frames(frames, (size_t)nr);
	assert_int_equal(nr, taken.nr_pc);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	free(taken.bytes);
}

static void a_stub_that_is_jumped_to_goes_on_where_it_jumps_back(void **state)
{
	const struct sigaction action = {.sa_handler = on_each_trap};
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	trap_in_lock(trap);
	assert_int_equal(nr_traps, NR_TRAPS - 1);
	for (size_t i = 0; i < nr_traps; i++) {
		struct dwunw_stack stack = live_stack(&traps[i]);
		enum dwunw_status status;
		int nr = live_capture(live, &traps[i], &stack, frames, &status);

		assert_int_equal(nr, traps[i].nr_pc);
		for (int at = 1; at < nr; at++)
			assert_int_equal(frames[at].pc, traps[i].pc[at]);
		assert_int_equal(status, DWUNW_STATUS_ENDED);
		free(traps[i].bytes);
	}
}

/* @high: where signals are handled. */
static void *run_thread(void *high)
{
	const stack_t on = {.ss_sp = high, .ss_size = STACK_BYTES}, off = {.ss_flags = SS_DISABLE};

	assert_int_equal(sigaltstack(&on, NULL), 0);
	trap_below_rbx();
	assert_int_equal(sigaltstack(&off, NULL), 0);
	return NULL;
}

/* Run a thread on a stack below that on which its signal is handled; both are one mapping. */
static void run_below(uint8_t *both)
{
	pthread_attr_t attr;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, both, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attr, run_thread, both + STACK_BYTES), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
}

static void interrupted_frame_is_found_on_a_stack_below(void **state)
{
	const uint64_t stack_end = live->stack_end;
	uint8_t *both = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct dwunw_stack stack;
	enum dwunw_status status;
	size_t nr;

	(void)state;
	assert_true(both != MAP_FAILED);
	handle(SA_ONSTACK);
	live->stack_end = (uintptr_t)(both + 2 * STACK_BYTES);
	run_below(both);
	live->stack_end = stack_end;
	stack = live_stack(&taken);
	nr = (size_t)live_capture(live, &taken, &stack, frames, &status);
	check_frames(frames, nr);
	/* Its caller's address is on the stack that was interrupted, which is not at hand. */
	assert_int_equal(interrupted_frame(frames, nr), nr - 1);
	assert_int_not_equal(status, DWUNW_STATUS_ENDED);
	assert_true(frames[nr - 1].flags & DWUNW_FRAME_FLAG_PARTIAL);
	free(taken.bytes);
	munmap(both, 2 * STACK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaf_hands_on_a_register_without_a_rule),
		cmocka_unit_test(a_stub_that_is_jumped_to_goes_on_where_it_jumps_back),
		cmocka_unit_test(interrupted_frame_is_found_on_a_stack_below),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
