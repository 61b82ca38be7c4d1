/* test_unwind_capture.c - stacks of this process, against libgcc's unwinder */
#include <errno.h>
#include <signal.h>

#include "tests/unit/unwind_live.h"

static struct snapshot snap;

#define NOINLINE __attribute__((noinline, noclone))

/* Keeps a call from becoming a jump, which would leave no frame. */
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

static void release(void)
{
	free(snap.bytes);
	snap.bytes = NULL;
}

/* The first frame is within live_snapshot(), the others are what libgcc found. */
static int check_snapshot(struct dwunw_frame *frames)
{
	struct dwunw_stack stack = live_stack(&snap);
	enum dwunw_status status;
	int nr = live_capture(live, &snap, &stack, frames, &status);

	assert_true(frames[0].pc - (uint64_t)(uintptr_t)live_snapshot < 4096);
	for (int i = 1; i < nr && i < (int)snap.nr_pc; i++)
		assert_int_equal(frames[i].pc, snap.pc[i]);
	assert_int_equal(nr, snap.nr_pc);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	for (int i = 0; i < nr; i++)
		assert_false(frames[i].flags & DWUNW_FRAME_FLAG_PARTIAL);
	return nr;
}

NOINLINE static int recurse(int depth)
{
	int below;

	if (!depth) {
		live_snapshot(live, &snap);
		return 0;
	}
	below = recurse(depth - 1);
	NO_TAIL_CALL();
	return below + 1;
}

static void a_deep_recursion(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	(void)state;
	assert_int_equal(recurse(200), 200);
	assert_true(check_snapshot(frames) > 200);
	assert_int_equal(frames[0].flags, 0);
	assert_int_equal(frames[1].flags, DWUNW_FRAME_FLAG_RETURN);
	release();
}

static int compare(const void *a, const void *b)
{
	if (!snap.bytes)
		live_snapshot(live, &snap);
	return *(const int *)a - *(const int *)b;
}

static void a_callback_of_qsort(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	int numbers[] = {3, 1, 2, 5, 4};

	(void)state;
	qsort(numbers, 5, sizeof(numbers[0]), compare);
	check_snapshot(frames);
	release();
}

NOINLINE static void with_alloca(size_t size)
{
	volatile char *room = __builtin_alloca(size);

	room[0] = 1;
	live_snapshot(live, &snap);
	room[size - 1] = 1;
}

static void a_function_with_alloca(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	(void)state;
	for (size_t size = 1; size < 5000; size += 997) {
		with_alloca(size);
		check_snapshot(frames);
		release();
	}
}

/* Arguments on the stack and an alignment that the stack does not have: gcc then keeps a pointer to
 * the arguments in a register of its own (DRAP) and finds the CFA through it. */
NOINLINE static long over_aligned(long a, long b, long c, long d, long e, long f, long g, long h)
{
	_Alignas(256) volatile char local[300];
	volatile char *room = __builtin_alloca((size_t)h);

	local[0] = room[0] = 1;
	assert_int_equal((uintptr_t)local % 256, 0);
	live_snapshot(live, &snap);
	return a + b + c + d + e + f + g + h + local[0] + room[0];
}

static void a_function_with_an_over_aligned_local(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	(void)state;
	assert_int_equal(over_aligned(1, 2, 3, 4, 5, 6, 7, 8), 38);
	check_snapshot(frames);
	release();
}

static void on_signal(int number)
{
	(void)number;
	live_snapshot(live, &snap);
	NO_TAIL_CALL();
}

NOINLINE static void check_signal(int number)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct sigaction action = {.sa_handler = on_signal}, old;
	int nr, nr_signal = 0;

	assert_int_equal(sigaction(number, &action, &old), 0);
	if (number == SIGTRAP)
		__asm__ volatile("int3");
	else
		raise(number);
	assert_int_equal(sigaction(number, &old, NULL), 0);
	nr = check_snapshot(frames);
	for (int i = 0; i < nr; i++) {
		if (!(frames[i].flags & DWUNW_FRAME_FLAG_SIGNAL))
			continue;
		nr_signal++;
		assert_false(frames[i].flags & DWUNW_FRAME_FLAG_RETURN);
		assert_false(frames[i + 1].flags & DWUNW_FRAME_FLAG_RETURN);
		assert_true(frames[i + 2].flags & DWUNW_FRAME_FLAG_RETURN);
	}
	assert_int_equal(nr_signal, 1);
	release();
}

static void a_signal_handler(void **state)
{
	(void)state;
	check_signal(SIGUSR1);
	check_signal(SIGTRAP);
}

static jmp_buf back;

__attribute__((noinline, used)) static void take_and_jump(void)
{
	live_snapshot(live, &snap);
	longjmp(back, 1);
}

/* A call that does not return, at the end of a function: the return address is in the next one,
 * where the stack looks different. */
__asm__(".text\n"
	".type ends_in_call, @function\n"
	"ends_in_call:\n\t.cfi_startproc\n\tsubq $40, %rsp\n\t.cfi_adjust_cfa_offset 40\n\t"
	"call take_and_jump\n\t.cfi_endproc\n"
	".size ends_in_call, . - ends_in_call\n"
	".type follows, @function\n"
	"follows:\n\t.cfi_startproc\n\tret\n\t.cfi_endproc\n"
	".size follows, . - follows\n");

void ends_in_call(void);

static void a_call_at_the_end_of_a_function(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	(void)state;
	if (!setjmp(back))
		ends_in_call();
	check_snapshot(frames);
	release();
}

static void room_for_fewer_frames_is_a_limit(void **state)
{
	struct dwunw_frame all[LIVE_MAX_FRAMES], frames[LIVE_MAX_FRAMES];
	struct dwunw_regset rs;
	struct dwunw_space *space;
	enum dwunw_status status;
	struct dwunw_stack stack;
	int nr_all;

	(void)state;
	recurse(3);
	nr_all = check_snapshot(all);
	stack = live_stack(&snap);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	for (int max = 1; max <= nr_all; max++) {
		assert_int_equal(
			unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, (size_t)max, &status),
			max);
		assert_int_equal(status,
				 max == nr_all ? DWUNW_STATUS_ENDED : DWUNW_STATUS_FRAME_LIMIT);
	}
	assert_int_equal(unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, 0, &status),
			 -EINVAL);
	dwunw_space_free(space);
	release();
}

static void the_event_says_what_frame_0_is(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct dwunw_regset rs;
	struct dwunw_space *space;
	enum dwunw_status status;
	struct dwunw_stack stack;

	(void)state;
	recurse(1);
	stack = live_stack(&snap);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS,
					      DWUNW_EVENT_RETURN_ADDRESS),
			 0);
	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(
		unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, LIVE_MAX_FRAMES, &status),
		snap.nr_pc);
	assert_int_equal(frames[0].flags, DWUNW_FRAME_FLAG_RETURN);
	assert_int_equal(frames[0].pc, snap.regs[DWUNW_X86_64_RIP]);
	dwunw_space_free(space);
	release();
}

static void registers_of_another_machine_are_refused(void **state)
{
	uint64_t regs[DWUNW_MAX_ARCH_REGS + 1] = {0};
	struct dwunw_regset rs;

	(void)state;
	for (size_t nr = 0; nr <= DWUNW_MAX_ARCH_REGS + 1; nr++)
		assert_int_equal(dwunw_regset_prepare(&rs, regs, nr, 0),
				 nr == DWUNW_MAX_ARCH_REGS ? 0 : DWUNW_ERR_ARCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deep_recursion),
		cmocka_unit_test(a_callback_of_qsort),
		cmocka_unit_test(a_function_with_alloca),
		cmocka_unit_test(a_function_with_an_over_aligned_local),
		cmocka_unit_test(a_signal_handler),
		cmocka_unit_test(a_call_at_the_end_of_a_function),
		cmocka_unit_test(room_for_fewer_frames_is_a_limit),
		cmocka_unit_test(the_event_says_what_frame_0_is),
		cmocka_unit_test(registers_of_another_machine_are_refused),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
