/* test_report_event_unwinder.c - what the unwinder is given of one event, and what comes back */
#include "tests/unit/event_unwinder_world.h"

static void a_whole_stack_has_all_callers(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(64, 5, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(64, 64 + 5 * FRAME_LEN, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 6, .from = 64});
	/* a word may begin anywhere */
	lay_frames(67, 7, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(67, 1000, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 8, .from = 67});
	finish(&f);
}

/* The address just behind a function is its own when it is one to return to. */
static void an_entry_is_told_from_a_return_address(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(0, 3, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(0, 3 * FRAME_LEN, 0);
	e.regs[DWUNW_X86_64_RIP] = MAP + FIRST;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 1});
	e.flags = DWUNW_EVENT_RETURN_ADDRESS;
	check_stack(
		&f, &e,
		(struct expected){DWUNW_STATUS_ENDED, .nr = 4, .flags = DWUNW_FRAME_FLAG_RETURN});
	finish(&f);
}

/* Zero ends a stack, unless it may stand for something that is not there. */
static void a_zero_is_the_end_only_where_it_was_in_the_stack(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(0, 3, MAP + BODY + 0x10, 0);
	e = event_of(0, 256, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 3});
	e.flags = DWUNW_EVENT_STACK_FAULT;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 3});
	finish(&f);
	f = start(!RAW);
	lay_frames(0, 3, MAP + BODY + 0x10, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 3});
	e.flags = 0;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 3});
	/* a caller that has none is the end all the same */
	lay_frames(0, 3, MAP + BODY + 0x10, MAP + FIRST + 8);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 4});
	finish(&f);
}

/* A stack that ends within its frames, by why it does. */
static void a_cut_stack_says_why_it_was_cut(void **state)
{
	static const struct {
		uint32_t flags;
		enum dwunw_status status;
	} cases[] = {
		{0, DWUNW_STATUS_TRUNCATED},
		{DWUNW_EVENT_STACK_LIMIT, DWUNW_STATUS_TRUNCATED},
		{DWUNW_EVENT_STACK_FAULT, DWUNW_STATUS_TRUNCATED},
		{DWUNW_EVENT_STACK_UNBOUNDED, DWUNW_STATUS_TRUNCATED},
		{DWUNW_EVENT_STACK_DEGRADED, DWUNW_STATUS_DEGRADED},
		{DWUNW_EVENT_STACK_DEGRADED | MLK_EVENT_NESTED | MLK_EVENT_TORN,
		 DWUNW_STATUS_DEGRADED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = start(i % 2 == 0);
		struct mlk_event e = event_of(0, 3 * FRAME_LEN, cases[i].flags);

		lay_frames(0, 9, MAP + BODY + 0x10, MAP + FIRST + 8);
		check_stack(&f, &e, (struct expected){cases[i].status, .nr = 4});
		/* the last return address is there, but for a byte */
		e.stack_len--;
		check_stack(&f, &e, (struct expected){cases[i].status, .nr = 3});
		finish(&f);
	}
}

/* Code without information is the outermost frame where the stack is known to end. */
static void where_a_stack_ends_may_be_known_or_not(void **state)
{
	static const uint32_t cut[] = {DWUNW_EVENT_STACK_LIMIT, DWUNW_EVENT_STACK_DEGRADED,
				       DWUNW_EVENT_STACK_UNBOUNDED};
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(0, 4, MAP + BODY + 0x10, MAP + BLIND + 8);
	e = event_of(0, 4 * FRAME_LEN, MLK_EVENT_TORN);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 5});
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		e.flags = cut[i];
		check_stack(&f, &e, (struct expected){DWUNW_STATUS_NO_CFI, .nr = 5});
	}
	finish(&f);
}

/* The function just called has its return address where the stack pointer is. */
static void code_without_information_has_a_caller_by_a_guess(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(56, 4, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(64, 512, 0);
	e.regs[DWUNW_X86_64_RIP] = MAP + BLIND + 4;
	check_stack(&f, &e,
		    (struct expected){DWUNW_STATUS_NO_CFI, .nr = 5, .from = 56, .guessed = 1});
	finish(&f);
}

static void without_a_stack_there_is_one_frame(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e = event_of(0, 0, 0);

	(void)state;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 1});
	e.stack = NULL;
	e.flags = DWUNW_EVENT_STACK_DEGRADED;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_DEGRADED, .nr = 1});
	/* its frame would end beyond all addresses */
	e = event_of(0, 128, DWUNW_EVENT_STACK_LIMIT);
	e.regs[DWUNW_X86_64_RSP] = UINT64_MAX - 15;
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_BAD_MEMORY, .nr = 1});
	finish(&f);
}

static void frames_beyond_the_most_are_left_out(void **state)
{
	const size_t end = FRAME_LEN * (STACK_MAX_FRAMES + 20);
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	lay_frames(0, STACK_MAX_FRAMES + 20, MAP + BODY + 0x10, MAP + FIRST + 8);
	e = event_of(0, end, 0);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_FRAME_LIMIT, .nr = STACK_MAX_FRAMES});
	/* nor does what was there earlier lead to the end */
	e = event_of(0, 5 * FRAME_LEN, DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &e, (struct expected){DWUNW_STATUS_TRUNCATED, .nr = 6});
	/* the last one that does */
	e = event_of(21 * FRAME_LEN, 22 * FRAME_LEN, DWUNW_EVENT_STACK_LIMIT);
	check_stack(&f, &e,
		    (struct expected){DWUNW_STATUS_STALE, .nr = STACK_MAX_FRAMES,
				      .from = 21 * FRAME_LEN, .stale_from = 22 * FRAME_LEN});
	finish(&f);
}

static void registers_of_another_machine_have_no_frames(void **state)
{
	static const uint16_t numbers[] = {0, 1, DWUNW_MAX_ARCH_REGS - 1, DWUNW_MAX_ARCH_REGS + 1,
					   MLK_MAX_REGS};
	struct fixture f = start(RAW);
	struct mlk_event e = event_of(0, 3 * FRAME_LEN, 0);

	(void)state;
	lay_frames(0, 3, MAP + BODY + 0x10, MAP + FIRST + 8);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		e.nr_regs = numbers[i];
		check_stack(&f, &e, (struct expected){DWUNW_STATUS_NO_CFI, .nr = 0});
	}
	finish(&f);
}

/* Where the program was mapped then, and in that process. */
static void the_maps_are_those_of_the_process_and_the_time(void **state)
{
	static const struct {
		uint32_t tgid;
		uint64_t time_ns, map;
	} cases[] = {
		{PID, 0, MAP},		 {PID, 100, MAP},	   {PID, 199, MAP},
		{PID, 200, OTHER_MAP},	 {PID, 900, OTHER_MAP},	   {PID, 150, MAP},
		{PID + 1, 1, OTHER_MAP}, {PID + 1, 99, OTHER_MAP},
	};
	struct fixture f = start(RAW);
	struct mlk_event e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t map = cases[i].map;

		lay_frames(0, 3, map + BODY + 0x10, map + FIRST + 8);
		e = event_of(0, 3 * FRAME_LEN, 0);
		e.tgid = cases[i].tgid;
		e.time_ns = cases[i].time_ns;
		e.regs[DWUNW_X86_64_RIP] = map + BODY;
		check_stack(&f, &e, (struct expected){DWUNW_STATUS_ENDED, .nr = 4, .map = map});
	}
	finish(&f);
}

static void a_process_without_maps_has_one_frame_in_no_module(void **state)
{
	struct fixture f = start(RAW);
	struct mlk_event e = event_of(0, 3 * FRAME_LEN, 0);
	struct dwunw_frame frames[2];
	uint32_t id;

	(void)state;
	lay_frames(0, 3, MAP + BODY + 0x10, MAP + FIRST + 8);
	e.tgid = PID + 7;
	assert_int_equal(event_unwinder_stack(f.unwinder, &e, &id), 0);
	assert_int_equal(dwunw_stack_status(f.dw, id), DWUNW_STATUS_NO_CFI);
	assert_int_equal(dwunw_stack_frames(f.dw, id, frames, 2), 1);
	assert_int_equal(frames[0].pc, e.regs[DWUNW_X86_64_RIP]);
	assert_int_equal(frames[0].module, DWUNW_NO_MODULE);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_stack_has_all_callers),
		cmocka_unit_test(an_entry_is_told_from_a_return_address),
		cmocka_unit_test(a_zero_is_the_end_only_where_it_was_in_the_stack),
		cmocka_unit_test(a_cut_stack_says_why_it_was_cut),
		cmocka_unit_test(where_a_stack_ends_may_be_known_or_not),
		cmocka_unit_test(code_without_information_has_a_caller_by_a_guess),
		cmocka_unit_test(without_a_stack_there_is_one_frame),
		cmocka_unit_test(frames_beyond_the_most_are_left_out),
		cmocka_unit_test(registers_of_another_machine_have_no_frames),
		cmocka_unit_test(the_maps_are_those_of_the_process_and_the_time),
		cmocka_unit_test(a_process_without_maps_has_one_frame_in_no_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
