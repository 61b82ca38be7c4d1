/* test_unwind_generated.c - the way through code that was generated, and has no information */
#include "tests/unit/unwind_live.h"

#define FOREIGN(n) (DWUNW_FOREIGN_MODULE + (n))
#define ENTRY	   0	/* bytes into the page of code: keeps a frame pointer, calls (rdi)(rsi) */
#define KEEPS	   1024 /* keeps one, calls (rdi)() */
#define KEEPS_NONE 2048 /* uses the register for something else, calls (rdi)() */

static const uint8_t entry[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48,
				0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0xc9, 0xc3};
static const uint8_t keeps[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
				0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
static const uint8_t keeps_none[] = {0x55, 0x48, 0xc7, 0xc5, 0x01, 0x00, 0x00, 0x00, 0x48, 0x83,
				     0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};

typedef void code_call(void);
typedef void code_entry(code_call *callee, code_call *arg);

static uint8_t *code;	       /* a page */
static struct snapshot snap;   /* from within the code */
static struct snapshot before; /* of those that called it */
static struct dwunw_frame frames[LIVE_MAX_FRAMES];
static uint32_t event_flags;

__attribute__((noinline, used)) static void take_snapshot(void)
{
	live_snapshot(live, &snap);
	__asm__ volatile("" : : : "memory");
}

/* Call @function by entry; libgcc tells the callers of this function. */
__attribute__((noinline, noclone)) static void enter(size_t function)
{
	code_entry *first = (code_entry *)(uintptr_t)(code + ENTRY);
	code_call *second = (code_call *)(uintptr_t)(code + function);

	/* a function with an argument that this type does not tell: rdi is handed on */
	live_snapshot(live, &before);
	free(before.bytes);
	first(second, take_snapshot);
	__asm__ volatile("" : : : "memory");
}

/* Unwind with the code mapped as @maps say; frames has the result.  Returns the number of them. */
static int unwind(const struct dwunw_mapping *maps, size_t nr_maps, uint32_t flags,
		  enum dwunw_status *status)
{
	struct dwunw_mapping all[LIVE_MAX_MAPS + 8];
	struct dwunw_stack stack = live_stack(&snap);
	struct dwunw_sample sample;
	struct dwunw_space *space;
	struct dwunw_regset rs;
	int nr;

	memcpy(all, live->maps, live->nr_maps * sizeof(*all));
	memcpy(all + live->nr_maps, maps, nr_maps * sizeof(*all));
	assert_int_equal(dwunw_space_new(&space, live->dw, all, live->nr_maps + nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS, event_flags), 0);
	sample = *PLAIN_SAMPLE(&rs, &stack);
	sample.flags = flags;
	nr = unwind_once(space, &sample, frames, LIVE_MAX_FRAMES, status);
	dwunw_space_free(space);
	return nr;
}

static struct dwunw_mapping mapping_of(size_t from, size_t len, uint32_t module, uint32_t flags)
{
	return (struct dwunw_mapping){.start = (uint64_t)(uintptr_t)code + from,
				      .end = (uint64_t)(uintptr_t)code + from + len,
				      .module = module,
				      .flags = flags};
}

static int unwind_page(uint32_t flags, enum dwunw_status *status)
{
	const struct dwunw_mapping map =
		mapping_of(0, 4096, DWUNW_NO_MODULE, DWUNW_MAPPING_GENERATED);

	return unwind(&map, 1, flags, status);
}

static int unwind_functions(enum dwunw_status *status)
{
	const uint32_t flags = DWUNW_MAPPING_GENERATED | DWUNW_MAPPING_FUNCTION;
	const struct dwunw_mapping maps[] = {mapping_of(ENTRY, 1024, FOREIGN(6), flags),
					     mapping_of(KEEPS, 1024, FOREIGN(7), flags),
					     mapping_of(KEEPS_NONE, 1024, FOREIGN(8), flags)};

	return unwind(maps, 3, DWUNW_SAMPLE_GUESS, status);
}

/* The frames that libgcc finds within, then @nr of the code, then those that libgcc found without;
 * none is guessed. */
static void check_through(int got, int nr)
{
	int at = (int)snap.nr_pc;

	/* live_snapshot() itself; and enter(), which called it elsewhere */
	assert_int_equal(got, (int)(snap.nr_pc - 1) + nr + (int)before.nr_pc - 1);
	at--; /* the frame at which libgcc has no information is in the code */
	for (int i = 1; i < at; i++)
		assert_int_equal(frames[i].pc, snap.pc[i]);
	for (int i = at; i < at + nr; i++) {
		assert_true(frames[i].flags & DWUNW_FRAME_FLAG_GENERATED);
		assert_int_equal(frames[i].pc, 0);
		assert_int_equal(frames[i].addr, 0);
	}
	assert_true(frames[at + nr].flags & DWUNW_FRAME_FLAG_POINTER);
	for (int i = at + nr + 1; i < got; i++) {
		assert_int_equal(frames[i].pc, before.pc[i - at - nr + 1]);
		assert_int_equal(frames[i].flags & ~(uint32_t)DWUNW_FRAME_FLAG_RETURN, 0);
	}
	for (int i = 0; i < got; i++)
		assert_false(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED);
}

static void frame_pointers_lead_through_it(void **state)
{
	enum dwunw_status status;
	int nr;

	(void)state;
	enter(KEEPS);
	nr = unwind_page(DWUNW_SAMPLE_GUESS, &status);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	check_through(nr, 1);
	assert_int_equal(frames[snap.nr_pc - 1].module, DWUNW_NO_MODULE);
	free(snap.bytes);
}

static void its_functions_are_told_apart(void **state)
{
	enum dwunw_status status;
	int nr;

	(void)state;
	enter(KEEPS);
	nr = unwind_functions(&status);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	check_through(nr, 2);
	assert_int_equal(frames[snap.nr_pc - 1].module, FOREIGN(7));
	assert_int_equal(frames[snap.nr_pc].module, FOREIGN(6));
	free(snap.bytes);
}

static void what_called_it_is_found_without_frame_pointers(void **state)
{
	enum dwunw_status status;
	int nr;

	(void)state;
	enter(KEEPS_NONE);
	nr = unwind_page(DWUNW_SAMPLE_GUESS, &status);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	check_through(nr, 1);
	free(snap.bytes);
}

/* There, functions are left out. */
static void functions_without_frame_pointers_have_guessed_callers(void **state)
{
	enum dwunw_status status;
	int nr, at;

	(void)state;
	enter(KEEPS_NONE);
	nr = unwind_functions(&status);
	at = (int)snap.nr_pc - 1;
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	assert_int_equal(frames[at].module, FOREIGN(8));
	assert_true(nr > at + 1);
	for (int i = 0; i < nr; i++)
		assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED), i > at);
	free(snap.bytes);
}

/* Where the outermost return address is, in 8 bytes of the stack. */
static size_t find_last(void)
{
	const uint64_t last = before.pc[before.nr_pc - 1];
	size_t i = snap.len / 8;

	while (i-- > 0)
		if (!memcmp(snap.bytes + 8 * i, &last, sizeof(last)))
			return i;
	fail();
	return 0;
}

/* The outermost return address is not what it was. */
static void a_way_that_leads_nowhere_is_a_guess(void **state)
{
	const uint64_t nowhere = 4096;
	enum dwunw_status status;
	int nr, at;

	(void)state;
	enter(KEEPS);
	memcpy(snap.bytes + 8 * find_last(), &nowhere, sizeof(nowhere));
	nr = unwind_page(DWUNW_SAMPLE_GUESS, &status);
	at = (int)snap.nr_pc - 1;
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	assert_true(frames[at].flags & DWUNW_FRAME_FLAG_GENERATED);
	for (int i = 0; i < nr; i++)
		assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED), i > at);
	free(snap.bytes);
}

/* Of a stack that was cut, what is above the code may be right; but not of one that is whole. */
static void a_way_beyond_the_end_of_a_whole_stack_is_a_guess(void **state)
{
	enum dwunw_status status;
	int nr, at;

	(void)state;
	enter(KEEPS);
	at = (int)snap.nr_pc - 1;
	snap.len = 8 * find_last();
	for (int whole = 0; whole < 2; whole++) {
		event_flags = whole ? 0 : DWUNW_EVENT_STACK_LIMIT;
		nr = unwind_page(DWUNW_SAMPLE_GUESS, &status);
		assert_int_equal(status, whole ? DWUNW_STATUS_NO_CFI : DWUNW_STATUS_TRUNCATED);
		assert_true(nr > at + 1);
		for (int i = 0; i < nr; i++)
			assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_GUESSED),
					 whole && i > at);
	}
	event_flags = 0;
	free(snap.bytes);
}

static void it_is_followed_on_request_alone(void **state)
{
	enum dwunw_status status;

	(void)state;
	enter(KEEPS);
	assert_int_equal(unwind_page(0, &status), (int)snap.nr_pc);
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	free(snap.bytes);
}

static int make_code(void **state)
{
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		return -1;
	memcpy(code + ENTRY, entry, sizeof(entry));
	memcpy(code + KEEPS, keeps, sizeof(keeps));
	memcpy(code + KEEPS_NONE, keeps_none, sizeof(keeps_none));
	return live_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_pointers_lead_through_it),
		cmocka_unit_test(its_functions_are_told_apart),
		cmocka_unit_test(what_called_it_is_found_without_frame_pointers),
		cmocka_unit_test(functions_without_frame_pointers_have_guessed_callers),
		cmocka_unit_test(a_way_that_leads_nowhere_is_a_guess),
		cmocka_unit_test(a_way_beyond_the_end_of_a_whole_stack_is_a_guess),
		cmocka_unit_test(it_is_followed_on_request_alone),
	};

	return cmocka_run_group_tests(tests, make_code, live_teardown);
}
