/* test_unwind_fast.c - the hot loop and the history against the walk with all registers
 *
 * DWUNW_SAMPLE_FULL is what the tests against libgcc and the damaged stacks hold to the truth; here
 * the short ways must come to the same id, which is the same frames and the same status.
 */
#include <signal.h>

#include "tests/unit/unwind_live.h"
#include "unwind/walk/walk.h"

#define NOINLINE __attribute__((noinline, noclone))

#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

#define MAX_SNAPS 400

static struct snapshot snaps[MAX_SNAPS];
static size_t nr_snaps;
static unsigned int seed = 1;

static unsigned int rnd(unsigned int below)
{
	return (unsigned int)rand_r(&seed) % below;
}

static void take(void)
{
	if (nr_snaps < MAX_SNAPS)
		live_snapshot(live, &snaps[nr_snaps++]);
}

static void on_signal(int number)
{
	(void)number;
	take();
	NO_TAIL_CALL();
}

static int compare(const void *a, const void *b)
{
	if (!rnd(4))
		take();
	return *(const int *)a - *(const int *)b;
}

NOINLINE static long over_aligned(long a, long b, long c, long d, long e, long f, long g, long h)
{
	_Alignas(128) volatile char local[300];
	volatile char *room = __builtin_alloca((size_t)h);

	local[0] = room[0] = 1;
	take();
	return a + b + c + d + e + f + g + h + local[0] + room[0];
}

/* A program that allocates here and there: a stack that grows, shrinks and changes. */
NOINLINE static int work(int depth)
{
	int numbers[] = {3, 1, 2}, sum = 0;
	volatile char *room;

	switch (depth > 12 ? 5 : rnd(7)) {
	case 0:
		sum = work(depth + 1);
		break;
	case 1:
		room = __builtin_alloca(rnd(200) + 1);
		room[0] = 1;
		sum = work(depth + 1) + room[0];
		break;
	case 2:
		qsort(numbers, 3, sizeof(numbers[0]), compare);
		break;
	case 3:
		sum = (int)over_aligned(1, 2, 3, 4, 5, 6, 7, 8);
		break;
	case 4:
		raise(SIGUSR1);
		break;
	case 5:
		take();
		break;
	default:
		sum = work(depth + 2) + work(depth + 1);
	}
	NO_TAIL_CALL();
	return sum + 1;
}

/* A function that has popped rbp and is about to return: by its information rbp is still saved, but
 * below rsp. */
__asm__(".text\n"
	".type popped, @function\n"
	"popped:\n\t.cfi_startproc\n\tpushq %rbp\n\t.cfi_def_cfa_offset 16\n\t"
	".cfi_offset rbp, -16\n\tpopq %rbp\n\t.cfi_def_cfa_offset 8\n\tret\n\t.cfi_endproc\n"
	".size popped, . - popped\n");

void popped(void);

static int setup(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;

	live_setup(state);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	while (nr_snaps < MAX_SNAPS)
		work(0);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < nr_snaps; i++)
		free(snaps[i].bytes);
	return live_teardown(state);
}

static struct dwunw_space *new_space(void)
{
	struct dwunw_space *space;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	return space;
}

/* A sample with all it points to, for the tests to spoil. */
struct spoilt {
	struct dwunw_regset regs;
	struct dwunw_stack stack;
	struct dwunw_sample sample;
	uint8_t bytes[1 << 16];
};

static void copy_snapshot(struct spoilt *s, const struct snapshot *from)
{
	assert_true(from->len <= sizeof(s->bytes));
	assert_int_equal(dwunw_regset_prepare(&s->regs, from->regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	memcpy(s->bytes, from->bytes, from->len);
	s->stack = (struct dwunw_stack){from->addr, s->bytes, from->len};
	s->sample = *PLAIN_SAMPLE(&s->regs, &s->stack);
}

/* An address of the stack, of code, or none. */
static uint64_t some_word(const struct spoilt *s)
{
	const struct snapshot *other = &snaps[rnd((unsigned int)nr_snaps)];

	switch (rnd(6)) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)rnd(1u << 31) << rnd(33);
	case 2:
		return s->stack.addr + rnd((unsigned int)s->stack.len + 64);
	case 3:
		return s->stack.addr + rnd((unsigned int)s->stack.len / 8 + 1) * 8;
	default:
		return other->pc[rnd((unsigned int)other->nr_pc)];
	}
}

static void spoil_words(struct spoilt *s)
{
	for (unsigned int i = rnd(3); i; i--) {
		/* more of them near the innermost frames */
		size_t at = rnd(2) ? rnd(1024) : rnd((unsigned int)s->stack.len + 1);
		uint64_t word = some_word(s);

		if (at + 8 <= s->stack.len && s->stack.bytes == s->bytes)
			memcpy(s->bytes + (at & ~(size_t)7), &word, 8);
	}
}

static void spoil_registers(struct spoilt *s)
{
	static const int used[] = {DWUNW_X86_64_RBP, DWUNW_X86_64_RSP, DWUNW_X86_64_RIP, 3, 12};
	int reg = used[rnd(5)];

	if (!rnd(4))
		s->regs.reg[reg] = some_word(s);
	if (!rnd(8))
		s->regs.known &= ~(1u << used[rnd(5)]);
	if (!rnd(4))
		s->regs.flags |= 1u << rnd(5);
	if (!rnd(4))
		s->sample.flags |= DWUNW_SAMPLE_GUESS;
}

static void spoil_extent(struct spoilt *s)
{
	if (!rnd(4))
		s->stack.len = rnd((unsigned int)s->stack.len + 1);
	if (!rnd(8))
		s->stack.addr += (uint64_t)rnd(128) - 64;
	if (!rnd(64))
		s->stack.addr = rnd(2) ? rnd(1000) : UINT64_MAX - rnd(100000);
	if (!rnd(4))
		s->sample.stale_from = s->stack.addr + rnd((unsigned int)s->stack.len + 16);
}

/* Let frame 0 be popped(), called by frame 1.  The bytes below rsp are at hand, or not. */
static void return_from_popped(struct spoilt *s)
{
	uint64_t word, at = 0;

	for (; at + 8 <= s->stack.len; at += 8) {
		memcpy(&word, s->stack.bytes + at, 8);
		if (word - (uint64_t)(uintptr_t)work < 4096)
			break;
	}
	if (at + 8 > s->stack.len)
		return;
	s->regs.reg[DWUNW_X86_64_RIP] = (uint64_t)(uintptr_t)popped + 2;
	s->regs.reg[DWUNW_X86_64_RSP] = s->stack.addr + at;
	if (rnd(2))
		at -= at ? 8 : 0;
	s->stack.addr += at;
	s->stack.bytes += at;
	s->stack.len -= at;
}

static void spoil(struct spoilt *s)
{
	if (!rnd(4) && s->stack.bytes == s->bytes)
		return_from_popped(s);
	spoil_words(s);
	spoil_registers(s);
	spoil_extent(s);
}

/* Unwind @s as it is and with all registers; the results must be the same. */
static void check_same(struct dwunw_space *space, const struct dwunw_sample *sample, size_t max,
		       struct dwunw_result *result)
{
	struct dwunw_sample full = *sample;
	struct dwunw_result slow;
	struct dwunw_frame frames[DWUNW_MAX_FRAMES];

	full.flags |= DWUNW_SAMPLE_FULL;
	full.history = NULL;
	assert_int_equal(dwunw_capture(space, sample, NULL, max, result), 0);
	assert_int_equal(dwunw_capture(space, &full, frames, max ? max : DWUNW_MAX_FRAMES, &slow),
			 0);
	assert_int_equal(result->status, slow.status);
	assert_int_equal(result->nr_frames, slow.nr_frames);
	assert_int_equal(result->id, slow.id);
	if (sample->history)
		return;
	/* now it is known */
	assert_int_equal(dwunw_capture(space, sample, NULL, max, result), 0);
	assert_int_equal(result->status, slow.status);
	assert_int_equal(result->nr_frames, slow.nr_frames);
	assert_int_equal(result->id, slow.id);
}

static void whole_stacks_take_the_fast_way(void **state)
{
	static struct spoilt s;
	struct dwunw_space *space = new_space();
	struct dwunw_result result;

	(void)state;
	for (size_t i = 0; i < nr_snaps; i++) {
		struct dwunw_stacks *stacks = live->dw->stacks;
		struct dwunw_pass p = {.space = space,
				       .stacks = stacks,
				       .sample = &s.sample,
				       .marks = stacks->marks,
				       .runs = stacks->runs,
				       .limit = DWUNW_MAX_FRAMES};

		copy_snapshot(&s, &snaps[i]);
		check_same(space, &s.sample, 0, &result);
		assert_int_equal(result.status, DWUNW_STATUS_ENDED);
		assert_int_equal(result.nr_frames, snaps[i].nr_pc);
		assert_int_equal(dwunw_walk_fast(&p), 0);
	}
	dwunw_space_free(space);
}

static void spoilt_stacks_end_the_same_way(void **state)
{
	static struct spoilt s;
	struct dwunw_space *space = new_space();
	struct dwunw_result result;
	size_t seen[DWUNW_STATUS_NR] = {0};

	(void)state;
	for (int i = 0; i < 20000; i++) {
		copy_snapshot(&s, &snaps[rnd((unsigned int)nr_snaps)]);
		spoil(&s);
		check_same(space, &s.sample, rnd(4) ? 0 : 1 + rnd(20), &result);
		seen[result.status]++;
	}
	for (int status = 0; status < DWUNW_STATUS_NR; status++)
		assert_true(seen[status] > 20);
	dwunw_space_free(space);
}

/* From where on are the bytes of @now those of @before, up to the same end? */
static uint64_t same_from(const struct dwunw_stack *before, const struct dwunw_stack *now)
{
	uint64_t at = now->addr + now->len;

	/* With another end it is not to be looked at. */
	if (before->addr + before->len != at)
		return rnd(2) ? 0 : UINT64_MAX;
	while (at > now->addr && at > before->addr &&
	       before->bytes[at - 1 - before->addr] == now->bytes[at - 1 - now->addr])
		at--;
	return at;
}

static struct spoilt thread[2]; /* the sample at hand, and the one before */

/* The next sample of the thread: the next snapshot, or the same one with a change. */
static void next_sample(struct spoilt *now, int step, bool spoiling)
{
	const struct spoilt *before = now == thread ? &thread[1] : thread;

	if (!spoiling || rnd(3)) {
		copy_snapshot(now, &snaps[(size_t)step / 2 % nr_snaps]);
	} else {
		*now = *before;
		now->stack.bytes = now->bytes + (before->stack.bytes - before->bytes);
		now->sample.regs = &now->regs;
		now->sample.stack = &now->stack;
	}
	if (spoiling && rnd(2))
		spoil(now);
}

static size_t follow(bool spoiling, int steps)
{
	struct dwunw_space *spaces[2] = {new_space(), new_space()};
	struct dwunw_history *history;
	struct dwunw_result result;
	size_t taken = 0;

	assert_int_equal(dwunw_history_new(&history), 0);
	copy_snapshot(&thread[1], &snaps[0]);
	for (int i = 0; i < steps; i++) {
		struct spoilt *now = &thread[i % 2], *before = &thread[(i + 1) % 2];

		next_sample(now, i, spoiling);
		now->sample.history = history;
		now->sample.unchanged_from =
			i ? same_from(&before->stack, &now->stack) : UINT64_MAX;
		check_same(spaces[spoiling && !rnd(8)], &now->sample,
			   spoiling && !rnd(8) ? 1 + rnd(20) : 0, &result);
		taken += result.nr_taken_over;
	}
	dwunw_history_free(history);
	dwunw_space_free(spaces[0]);
	dwunw_space_free(spaces[1]);
	return taken;
}

static void a_history_changes_nothing_but_the_work(void **state)
{
	(void)state;
	assert_true(follow(false, 2000) > 4000);
	assert_true(follow(true, 40000) > 40000);
}

static void a_wrong_hint_is_noticed_by_these_tests(void **state)
{
	static struct spoilt s;
	struct dwunw_space *space = new_space();
	struct dwunw_history *history;
	struct dwunw_result first, second;
	uint64_t word;

	(void)state;
	assert_int_equal(dwunw_history_new(&history), 0);
	copy_snapshot(&s, &snaps[0]);
	s.sample.history = history;
	check_same(space, &s.sample, 0, &first);
	/* another outermost return address, and the claim that nothing has changed */
	for (size_t at = 0; at + 8 <= s.stack.len; at += 8) {
		memcpy(&word, s.bytes + at, 8);
		if (word == snaps[0].pc[snaps[0].nr_pc - 1])
			memset(s.bytes + at, 0, 8);
	}
	s.sample.unchanged_from = 0;
	assert_int_equal(dwunw_capture(space, &s.sample, NULL, 0, &second), 0);
	assert_int_equal(second.id, first.id);
	assert_int_equal(second.nr_taken_over, second.nr_frames);
	s.sample.unchanged_from = UINT64_MAX;
	check_same(space, &s.sample, 0, &second);
	assert_int_equal(second.nr_frames, first.nr_frames - 1);
	dwunw_history_free(history);
	dwunw_space_free(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_stacks_take_the_fast_way),
		cmocka_unit_test(spoilt_stacks_end_the_same_way),
		cmocka_unit_test(a_history_changes_nothing_but_the_work),
		cmocka_unit_test(a_wrong_hint_is_noticed_by_these_tests),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
