/* test_unwind_guess.c - what is found beyond code without call frame information is marked */
#include <errno.h>

#include "tests/unit/unwind_live.h"

static struct snapshot snap;

__attribute__((noinline, used)) static void take_snapshot(void)
{
	live_snapshot(live, &snap);
	__asm__ volatile("" : : : "memory");
}

/* Functions without any information: one keeps a frame pointer, one uses the register for something
 * else, one has no frame and stores the registers and the stack itself. */
__asm__(".text\n"
	".type blind_with_pointer, @function\n"
	"blind_with_pointer:\n\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $48, %rsp\n\t"
	"call take_snapshot\n\tleave\n\tret\n"
	".size blind_with_pointer, . - blind_with_pointer\n"
	".type blind, @function\n"
	"blind:\n\tpushq %rbp\n\tmovq $1, %rbp\n\tsubq $32, %rsp\n\tcall take_snapshot\n\t"
	"addq $32, %rsp\n\tpopq %rbp\n\tret\n"
	".size blind, . - blind\n"
	".type blind_leaf, @function\n"
	"blind_leaf:\n\tmovq %rbp, 48(%rdi)\n\tmovq %rsp, 56(%rdi)\n\t"
	"leaq 1f(%rip), %rax\n1:\tmovq %rax, 128(%rdi)\n\tmovq %rdx, %rcx\n\t"
	"movq %rsi, %rdi\n\tmovq %rsp, %rsi\n\trep movsb\n\tret\n"
	".size blind_leaf, . - blind_leaf\n");

void blind_with_pointer(void);
void blind(void);
void blind_leaf(uint64_t *regs, uint8_t *bytes, size_t len);

/* Call @function in a frame of its own. */
__attribute__((noinline, noclone)) static uint64_t call(void (*function)(void))
{
	function();
	__asm__ volatile("" : : : "memory");
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static int guess(struct dwunw_frame *frames, uint32_t flags, enum dwunw_status *status)
{
	struct dwunw_stack stack = live_stack(&snap);
	struct dwunw_sample sample;
	struct dwunw_space *space;
	struct dwunw_regset rs;
	int nr;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	sample = *PLAIN_SAMPLE(&rs, &stack);
	sample.flags = flags;
	nr = unwind_once(space, &sample, frames, LIVE_MAX_FRAMES, status);
	dwunw_space_free(space);
	return nr;
}

/* Unwind beyond @function: guessed, the frames are those of call() and all its callers. */
static void check_beyond(void (*function)(void))
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;
	uint64_t caller = call(function);
	int nr, sure = guess(frames, 0, &status), at;

	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	assert_int_equal(sure, 3);
	assert_true(frames[2].pc - (uint64_t)(uintptr_t)function < 64);
	nr = guess(frames, DWUNW_SAMPLE_GUESS, &status);
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	assert_true(nr > sure + 2);
	for (int i = 0; i < nr; i++) {
		assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED), i >= sure);
		assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_PARTIAL), i == nr - 1);
	}
	for (at = sure; at < nr && frames[at].pc != caller; at++)
		;
	assert_int_equal(at, sure + 1);
	free(snap.bytes);
}

static void a_frame_pointer_leads_on(void **state)
{
	(void)state;
	check_beyond(blind_with_pointer);
}

static void so_does_a_word_behind_a_call(void **state)
{
	(void)state;
	check_beyond(blind);
}

__attribute__((noinline, noclone)) static uint64_t call_leaf(void)
{
	blind_leaf(snap.regs, snap.bytes, snap.len);
	__asm__ volatile("" : : : "memory");
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static void a_function_without_a_frame_returns_to_rsp(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;
	uint64_t caller;

	(void)state;
	snap = (struct snapshot){.len = 512, .bytes = malloc(512)};
	assert_non_null(snap.bytes);
	caller = call_leaf();
	snap.addr = snap.regs[DWUNW_X86_64_RSP];
	assert_int_equal(guess(frames, 0, &status), 1);
	assert_true(guess(frames, DWUNW_SAMPLE_GUESS, &status) > 2);
	assert_int_equal(frames[0].flags, 0);
	assert_memory_equal(&frames[1].pc, snap.bytes, 8);
	assert_int_equal(frames[1].flags, DWUNW_FRAME_FLAG_GUESSED | DWUNW_FRAME_FLAG_RETURN);
	assert_int_equal(frames[2].pc, caller);
	free(snap.bytes);
}

static void whole_stacks_have_no_guesses(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;
	int nr;

	(void)state;
	take_snapshot();
	nr = guess(frames, DWUNW_SAMPLE_GUESS, &status);
	assert_int_equal(nr, snap.nr_pc);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	for (int i = 0; i < nr; i++)
		assert_false(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED);
	free(snap.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_pointer_leads_on),
		cmocka_unit_test(so_does_a_word_behind_a_call),
		cmocka_unit_test(a_function_without_a_frame_returns_to_rsp),
		cmocka_unit_test(whole_stacks_have_no_guesses),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
