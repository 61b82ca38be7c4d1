/* test_unwind_jumps.c - code whose CFA is not on the stack, or that nothing has called
 *
 * longjmp() and setcontext() find their caller by what they are about to load: their CFA is the
 * buffer, wherever that is.  A signal after each of their instructions is unwound as libgcc does.
 */
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "tests/unit/unwind_live.h"

#define NOINLINE __attribute__((noinline, noclone))

#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

#define NR_STEPS  64 /* the last ones of a jump: a sanitizer does much before it */
#define TRAP_FLAG 0x100

static struct snapshot steps[NR_STEPS];
static size_t nr_steps;		      /* taken; the last of them are kept */
static uint64_t libc_start, libc_end; /* its code */

static void on_step(int number, siginfo_t *info, void *arg)
{
	const ucontext_t *context = arg;
	uint64_t pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

	(void)number, (void)info;
	if (pc < libc_start || pc >= libc_end)
		return;
	free(steps[nr_steps % NR_STEPS].bytes);
	live_snapshot(live, &steps[nr_steps++ % NR_STEPS]);
}

static int setup(void **state)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	live_setup(state);
	for (size_t i = 0; i < live->nr_maps; i++) {
		const char *path = dwunw_module_path(live->dw, live->maps[i].module);

		if (!path || !strstr(path, "/libc.so"))
			continue;
		libc_start = live->maps[i].start;
		libc_end = live->maps[i].end;
	}
	assert_true(libc_end);
	return sigaction(SIGTRAP, &action, NULL);
}

static void set_stepping(bool on)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG);
}

static jmp_buf static_buffer;
static ucontext_t static_context;
static volatile int times;

static void by_longjmp(void *to)
{
	longjmp(*(jmp_buf *)to, 1);
}

static void by_setcontext(void *to)
{
	setcontext(to);
}

NOINLINE static int jump(void (*by)(void *), void *to, int depth)
{
	if (depth) {
		depth = jump(by, to, depth - 1);
	} else {
		set_stepping(true);
		by(to);
	}
	NO_TAIL_CALL();
	return depth;
}

/* The snapshots are all as libgcc says; how many are complete? */
static size_t check_steps(void)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	size_t nr_complete = 0;

	assert_true(nr_steps >= 20);
	for (size_t i = 0; i < NR_STEPS && i < nr_steps; i++) {
		const struct dwunw_stack stack = live_stack(&steps[i]);
		enum dwunw_status status;
		size_t nr = (size_t)live_capture(live, &steps[i], &stack, frames, &status);

		for (size_t f = 1; f < nr && f < steps[i].nr_pc; f++)
			assert_int_equal(frames[f].pc, steps[i].pc[f]);
		if (status != DWUNW_STATUS_ENDED)
			continue;
		assert_int_equal(nr, steps[i].nr_pc);
		nr_complete++;
	}
	return nr_complete;
}

static size_t nr_kept(void)
{
	return nr_steps < NR_STEPS ? nr_steps : NR_STEPS;
}

static void longjmp_by_a_static_buffer(void **state)
{
	(void)state;
	nr_steps = 0;
	if (!setjmp(static_buffer))
		jump(by_longjmp, &static_buffer, 3);
	set_stepping(false);
	assert_int_equal(check_steps(), nr_kept());
}

static void longjmp_by_a_buffer_on_the_stack(void **state)
{
	jmp_buf buffer;

	(void)state;
	nr_steps = 0;
	if (!setjmp(buffer))
		jump(by_longjmp, &buffer, 3);
	set_stepping(false);
	assert_int_equal(check_steps(), nr_kept());
}

NOINLINE static void set_and_jump(jmp_buf *buffer)
{
	if (!setjmp(*buffer))
		jump(by_longjmp, buffer, 3);
	set_stepping(false);
}

static void longjmp_by_a_buffer_above_its_aim(void **state)
{
	jmp_buf buffer;

	(void)state;
	nr_steps = 0;
	set_and_jump(&buffer);
	assert_int_equal(check_steps(), nr_kept());
}

/* The bytes of a stack do not tell what stands elsewhere: nothing is made up. */
static void setcontext_by_a_static_context_is_found_as_far_as_the_stack_tells(void **state)
{
	size_t nr_complete;

	(void)state;
	times = 0;
	nr_steps = 0;
	assert_int_equal(getcontext(&static_context), 0);
	if (!times++)
		jump(by_setcontext, &static_context, 3);
	set_stepping(false);
	nr_complete = check_steps();
	assert_true(nr_complete > 0 && nr_complete < nr_kept());
}

static void setcontext_by_a_context_on_the_stack(void **state)
{
	ucontext_t context;

	(void)state;
	times = 0;
	nr_steps = 0;
	assert_int_equal(getcontext(&context), 0);
	if (!times++)
		jump(by_setcontext, &context, 3);
	set_stepping(false);
	assert_int_equal(check_steps(), nr_kept());
}

static ucontext_t main_context, coroutine;
static struct snapshot taken;

static void run_coroutine(void)
{
	live_snapshot(live, &taken);
	NO_TAIL_CALL();
}

/* makecontext() puts the address of code that nothing called where a return address stands.  For
 * libgcc it is the last frame; the symbol table of libc names it. */
static void a_coroutine_ends_where_it_was_made(void **state)
{
	static uint8_t room[256 << 10] __attribute__((aligned(16)));
	const uint64_t stack_end = live->stack_end;
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct dwunw_stack stack;
	struct dwunw_symbol name;
	enum dwunw_status status;
	size_t nr;

	(void)state;
	live->stack_end = (uint64_t)(uintptr_t)(room + sizeof(room));
	assert_int_equal(getcontext(&coroutine), 0);
	coroutine.uc_stack = (stack_t){.ss_sp = room, .ss_size = sizeof(room)};
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	assert_int_equal(swapcontext(&main_context, &coroutine), 0);
	live->stack_end = stack_end;
	stack = live_stack(&taken);
	nr = (size_t)live_capture(live, &taken, &stack, frames, &status);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	assert_int_equal(nr, 3);
	assert_int_equal(nr, taken.nr_pc);
	assert_int_equal(frames[1].pc, taken.pc[1]);
	assert_int_equal(frames[2].pc, taken.pc[2]);
	assert_int_equal(frames[2].flags, DWUNW_FRAME_FLAG_UNCALLED);
	assert_int_equal(dwunw_debug_dir_add(live->dw, "/usr/lib/debug"), 0);
	assert_int_equal(dwunw_symbol_resolve_batch(live->dw, &frames[2], 1, &name), 0);
	assert_string_equal(name.function, "__start_context");
	assert_int_equal(name.offset, 0);
	free(taken.bytes);
}

/* A function with no information for what is before it, which is no call. */
__asm__(".text\n\t.fill 8, 1, 0x90\n"
	".type not_called, @function\n"
	"not_called:\n\t.cfi_startproc\n\tnop\n\tret\n\t.cfi_endproc\n"
	".size not_called, . - not_called\n");

void not_called(void);

/* Unwind over some words by @pc and @flags of a sample.  Returns the last frame. */
static struct dwunw_frame unwind_words(struct dwunw_space *space, uint64_t pc, uint64_t top,
				       uint32_t flags, struct dwunw_result *result)
{
	const uint64_t words[] = {top, 1, 1};
	const struct dwunw_stack stack = {1ull << 40, (const uint8_t *)words, sizeof(words)};
	struct dwunw_regset regs = {.known = (1u << DWUNW_MAX_ARCH_REGS) - 1};
	struct dwunw_sample sample = *PLAIN_SAMPLE(&regs, &stack);
	struct dwunw_frame frames[3];

	regs.reg[DWUNW_X86_64_RSP] = stack.addr;
	regs.reg[DWUNW_X86_64_RIP] = pc;
	sample.flags = flags;
	assert_int_equal(dwunw_capture(space, &sample, frames, 3, result), 0);
	return frames[result->nr_frames - 1];
}

/* Both are no return address, but only where nothing called it does the stack end for want of code
 * to return to. */
static void code_that_nothing_called_is_not_taken_for_code_that_runs(void **state)
{
	static const uint32_t flags[] = {0, 0, DWUNW_SAMPLE_FULL};
	const uint64_t pc = (uint64_t)(uintptr_t)not_called;
	struct dwunw_result uncalled, runs;
	struct dwunw_frame last;
	struct dwunw_space *space;

	(void)state;
	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 3; i++) {
			last = unwind_words(space, pc + 1, pc, flags[i], &uncalled);
			assert_int_equal(uncalled.status, DWUNW_STATUS_ENDED);
			assert_int_equal(uncalled.nr_frames, 2);
			assert_int_equal(last.pc, pc);
			assert_int_equal(last.flags, DWUNW_FRAME_FLAG_UNCALLED);
			last = unwind_words(space, pc, 2, flags[i], &runs);
			assert_int_equal(runs.status, DWUNW_STATUS_NOT_CODE);
			assert_int_equal(runs.nr_frames, 1);
			assert_int_equal(last.pc, pc);
		}
	dwunw_space_free(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longjmp_by_a_static_buffer),
		cmocka_unit_test(longjmp_by_a_buffer_on_the_stack),
		cmocka_unit_test(longjmp_by_a_buffer_above_its_aim),
		cmocka_unit_test(setcontext_by_a_static_context_is_found_as_far_as_the_stack_tells),
		cmocka_unit_test(setcontext_by_a_context_on_the_stack),
		cmocka_unit_test(a_coroutine_ends_where_it_was_made),
		cmocka_unit_test(code_that_nothing_called_is_not_taken_for_code_that_runs),
	};

	return cmocka_run_group_tests(tests, setup, live_teardown);
}
