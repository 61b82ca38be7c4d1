/* test_report_event_unwinder_last.c - an event's stack, and what is known of its thread's last one
 */
#include "tests/unit/event_unwinder_world.h"

/* The same thread, 64 bytes deeper; all above is said to be as it was, and is. */
static void what_is_unchanged_is_what_the_thread_had_before(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(64, 8, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(64, 64 + 8 * FRAME_LEN, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 9, .from = 64});
	for (uint64_t code = MAP + BODY + 0x100; code < MAP + BODY + 0x200; code += 0x40) {
		lay_frames(0, 4, code, code + 0x30);
		e = event_of(0, 64 + 8 * FRAME_LEN, 0);
		e.stack_same_from = BASE + 64;
		check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 13});
	}
	finish(&f);
}

/* Two stacks with one end: what is new, and what was there under the same addresses. */
struct two_stacks {
	struct mlk_event old, now;
};

/* Lay the old one and check it; then let the memory hold another one. */
static struct two_stacks change_stack(struct fixture *f)
{
	struct two_stacks two;

	lay_frames(0, 8, MAP + BODY + 0x10, MAP + FIRST + 8);
	two.old = event_of(0, 8 * FRAME_LEN, 0);
	check_stack(f, &two.old, (struct expected){DWUNW_STATUS_ENDED, .nr = 9});
	lay_frames(0, 8, MAP + BODY + 0x300, MAP + FIRST + 0x18);
	two.now = event_of(0, 8 * FRAME_LEN, 0);
	return two;
}

static bool is_like_before(struct fixture *f, const struct mlk_event *event)
{
	struct dwunw_frame frames[2];
	uint32_t id;

	assert_int_equal(event_unwinder_stack(f->unwinder, event, &id), 0);
	assert_int_equal(dwunw_stack_frames(f->dw, id, frames, 2), 2);
	return frames[1].pc != word_at(return_slot(event->regs[DWUNW_X86_64_RSP] - BASE, 0));
}

/* Whether the thread's last stack is known shows when an event claims to have the same bytes, and
 * has not. */
static void the_last_stack_is_known_of_each_thread_by_itself(void **state)
{
	struct fixture f = start(RAW);
	struct two_stacks two = change_stack(&f);

	(void)state;
	two.now.stack_same_from = BASE;
	two.now.tid = TID + 1;
	assert_false(is_like_before(&f, &two.now));
	two.now.tid = TID;
	two.now.tgid = PID + 2;
	assert_false(is_like_before(&f, &two.now));
	two.now.tgid = PID;
	assert_true(is_like_before(&f, &two.now));
	finish(&f);
}

static void what_is_not_said_to_be_unchanged_is_read(void **state)
{
	struct fixture f = start(RAW);
	struct two_stacks two = change_stack(&f);

	(void)state;
	assert_int_equal(two.now.stack_same_from, UINT64_MAX);
	assert_false(is_like_before(&f, &two.now));
	two = change_stack(&f);
	two.now.stack_same_from = BASE + 2 * FRAME_LEN; /* frame 0 returns to what was written */
	assert_false(is_like_before(&f, &two.now));
	finish(&f);
}

/* The unwinder has not seen the stack that the next one is like. */
static void a_stack_that_was_not_unwound_is_not_the_last_one(void **state)
{
	struct fixture f = start(RAW);
	struct two_stacks two = change_stack(&f);

	(void)state;
	two.now.nr_regs = 1;
	check_stack(&f, &two.now, (struct expected){DWUNW_STATUS_NO_CFI, .nr = 0});
	two.now.nr_regs = DWUNW_MAX_ARCH_REGS;
	two.now.stack_same_from = BASE;
	check_stack(&f, &two.now, (struct expected){DWUNW_STATUS_ENDED, .nr = 9});
	/* that of another thread is */
	two = change_stack(&f);
	two.now.nr_regs = 1;
	two.now.tid = TID + 1;
	check_stack(&f, &two.now, (struct expected){DWUNW_STATUS_NO_CFI, .nr = 0});
	two.now.nr_regs = DWUNW_MAX_ARCH_REGS;
	two.now.tid = TID;
	two.now.stack_same_from = BASE;
	assert_true(is_like_before(&f, &two.now));
	finish(&f);
}

/* A chunk begins, with one thread or with many known. */
static void the_last_stacks_of_many_threads_are_not_kept(void **state)
{
	struct fixture f = start(RAW);
	struct two_stacks two = change_stack(&f);

	(void)state;
	event_unwinder_begin(f.unwinder, f.history);
	two.now.stack_same_from = BASE;
	assert_true(is_like_before(&f, &two.now));
	two = change_stack(&f);
	for (uint32_t tid = 1; tid < 2000; tid++) {
		struct mlk_event other = event_of(0, 0, 0);

		other.tid = 1000 + tid;
		check_stack(&f, &other, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 1});
	}
	event_unwinder_begin(f.unwinder, f.history);
	two.now.stack_same_from = BASE;
	assert_false(is_like_before(&f, &two.now));
	finish(&f);
}

/* A whole stack of 10 frames at 160, of which check_continued() is to see the outer ones. */
static struct mlk_event whole_stack(void)
{
	lay_frames(160, 10, MAP + BODY + 0x10, MAP + FIRST + 8);
	return event_of(160, 320, 0);
}

/* Another stack of that thread: 4 frames at 96 of which the innermost bytes are at hand, up to 170.
 * The outer ones, which are not in the event, stay as they are in memory. */
static struct mlk_event cut_stack(uint32_t flags)
{
	lay_frames(96, 4, MAP + BODY + 0x500, MAP + BODY + 0x600);
	return event_of(96, 176, flags);
}

static const struct expected continued = {DWUNW_STATUS_STALE, .nr = 15, .from = 96,
					  .stale_from = 176};
static const struct expected limited = {DWUNW_STATUS_TRUNCATED, .nr = 6, .from = 96};

static void a_cut_stack_goes_on_by_what_the_thread_had_above_it(void **state)
{
	struct fixture f = start(RAW);
	struct expected degraded = limited, partly = continued;
	struct mlk_event whole = whole_stack(), cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);

	(void)state;
	check_stack(&f, &cut, limited); /* nothing is known of it */
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	check_stack(&f, &cut, continued);
	check_stack(&f, &cut, continued);
	cut.flags = DWUNW_EVENT_STACK_DEGRADED;
	check_stack(&f, &cut, continued);
	/* a return address is as old as its oldest byte */
	cut.stack_len = (uint32_t)return_slot(96, 3) + 7 - 96;
	partly.stale_from = return_slot(96, 3) + 7;
	check_stack(&f, &cut, partly);
	cut = cut_stack(DWUNW_EVENT_STACK_DEGRADED);
	/* of another thread it is not known */
	degraded.status = DWUNW_STATUS_DEGRADED;
	cut.tid++;
	check_stack(&f, &cut, degraded);
	cut.tid--;
	check_stack(&f, &cut, continued);
	/* one that is not said to be cut is as it is */
	cut.flags = 0;
	check_stack(&f, &cut, limited);
	finish(&f);
}

/* All that is needed is in the event, or nothing but the registers. */
static void a_cut_stack_may_need_no_older_bytes_or_all(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut;

	(void)state;
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	lay_frames(96, 4, MAP + BODY + 0x500, MAP + FIRST + 8);
	cut = event_of(96, 160, DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &cut, (struct expected){DWUNW_STATUS_ENDED, .nr = 5, .from = 96});
	cut = event_of(160, 160, DWUNW_EVENT_STACK_LIMIT);
	check_stack(
		&f, &cut,
		(struct expected){DWUNW_STATUS_STALE, .nr = 11, .from = 160, .stale_from = 160});
	finish(&f);
}

/* Only what leads to the outermost frame is worth the doubt: frames that do not are not told. */
static void older_bytes_that_lead_to_no_end_tell_nothing(void **state)
{
	static const uint64_t ends[] = {LOCAL, MAP + BODY + 0x20, MAP + BLIND + 8};
	struct mlk_event whole, cut;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct fixture f = start(RAW);
		uint32_t id;

		whole = whole_stack();
		put_word(return_slot(160, 9), ends[i]);
		whole.flags = DWUNW_EVENT_STACK_LIMIT;
		assert_int_equal(event_unwinder_stack(f.unwinder, &whole, &id), 0);
		cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
		check_stack(&f, &cut, limited);
		finish(&f);
	}
}

/* In a trace without all bytes, a zero among the older ones may be one that was left out. */
static void older_zeros_are_no_end_where_bytes_were_left_out(void **state)
{
	(void)state;
	for (int raw = 0; raw < 2; raw++) {
		struct fixture f = start(raw);
		struct expected to_zero = continued;
		struct mlk_event whole, cut;
		uint32_t id;

		whole = whole_stack();
		put_word(return_slot(160, 9), 0);
		assert_int_equal(event_unwinder_stack(f.unwinder, &whole, &id), 0);
		cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
		to_zero.nr--;
		check_stack(&f, &cut, raw ? to_zero : limited);
		finish(&f);
	}
}

/* What an event with older bytes comes to is not what the thread's next one is compared with. */
static void older_bytes_do_not_become_the_last_stack(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut;

	(void)state;
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &cut, continued);
	lay_frames(96, 4, MAP + BODY + 0x700, MAP + FIRST + 8);
	cut.stack_same_from = BASE + 96;
	assert_true(is_like_before(&f, &cut));
	finish(&f);
}

/* One event right after the other: nothing of the first one's bytes is left for the second. */
static void older_bytes_are_those_of_the_event_alone(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
	struct mlk_event another = cut;
	uint32_t first, second;
	int err;

	(void)state;
	another.tid++;
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	err = event_unwinder_stack(f.unwinder, &cut, &first);
	err |= event_unwinder_stack(f.unwinder, &another, &second);
	assert_int_equal(err, 0);
	assert_int_equal(dwunw_stack_status(f.dw, first), DWUNW_STATUS_STALE);
	assert_int_equal(dwunw_stack_status(f.dw, second), DWUNW_STATUS_TRUNCATED);
	finish(&f);
}

static void a_chunk_knows_what_it_is_given(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
	struct stack_history *other;

	(void)state;
	assert_int_equal(stack_history_new(&other, NULL, NULL), 0);
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	event_unwinder_begin(f.unwinder, other);
	check_stack(&f, &cut, limited);
	event_unwinder_begin(f.unwinder, f.history);
	check_stack(&f, &cut, continued);
	finish(&f);
	stack_history_free(other);
}

static void the_stack_at_attach_is_the_first_that_is_known(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut;

	(void)state;
	event_unwinder_add(f.unwinder, &whole);
	cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &cut, continued);
	/* one that comes later is taken as it is, whatever it says of those before */
	lay_frames(160, 10, MAP + BODY + 0x800, MAP + FIRST + 0x20);
	whole.stack_same_from = 0;
	event_unwinder_add(f.unwinder, &whole);
	cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &cut, continued);
	assert_int_equal(whole.stack_same_from, 0);
	finish(&f);
}

static void what_another_program_had_is_forgotten(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event whole = whole_stack(), cut = cut_stack(DWUNW_EVENT_STACK_LIMIT);

	(void)state;
	check_stack(&f, &whole, (struct expected){DWUNW_STATUS_ENDED, .nr = 11, .from = 160});
	event_unwinder_forget(f.unwinder, PID + 1);
	check_stack(&f, &cut, continued);
	event_unwinder_forget(f.unwinder, PID);
	check_stack(&f, &cut, limited);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unchanged_is_what_the_thread_had_before),
		cmocka_unit_test(the_last_stack_is_known_of_each_thread_by_itself),
		cmocka_unit_test(what_is_not_said_to_be_unchanged_is_read),
		cmocka_unit_test(a_stack_that_was_not_unwound_is_not_the_last_one),
		cmocka_unit_test(the_last_stacks_of_many_threads_are_not_kept),
		cmocka_unit_test(a_cut_stack_goes_on_by_what_the_thread_had_above_it),
		cmocka_unit_test(a_cut_stack_may_need_no_older_bytes_or_all),
		cmocka_unit_test(older_bytes_that_lead_to_no_end_tell_nothing),
		cmocka_unit_test(older_zeros_are_no_end_where_bytes_were_left_out),
		cmocka_unit_test(older_bytes_do_not_become_the_last_stack),
		cmocka_unit_test(older_bytes_are_those_of_the_event_alone),
		cmocka_unit_test(a_chunk_knows_what_it_is_given),
		cmocka_unit_test(the_stack_at_attach_is_the_first_that_is_known),
		cmocka_unit_test(what_another_program_had_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
