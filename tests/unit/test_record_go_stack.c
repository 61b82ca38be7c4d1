/* test_record_go_stack.c - stacks put together: what the runtime noted, and what it did not */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/golang/go_stack.h"
#include "unwind/dwunw_event.h"

#define OWN	0x7f0000000000u /* the thread's stack */
#define OTHER	0xc000010000u	/* the goroutine's */
#define NR_OWN	128		/* words */
#define NR_PART 64
#define ID	((uint64_t)7 << 32 | 8)
#define G	0xc000000100u
#define CALLED	0x401234u
#define BACK	0x405678u
#define CROSS	0x409000u

static const struct go_program program = {
	.is_go = true,
	.call = {.ret = CALLED, .frame = 64, .below = 64, .g = 48, .depth = 40},
	.callback = {.ret = BACK, .frame = 32, .from = CROSS, .to = CROSS + 0x100},
};

struct world {
	struct go_stacks *stacks;
	uint64_t own[NR_OWN];
	struct {
		struct event_part head;
		uint64_t words[NR_PART];
	} part;
};

/* Word @i of the goroutine's stack, as it is told apart from others. */
static uint64_t of_part(size_t i)
{
	return 0x5000000 + i;
}

/* The goroutine has left its stack at word @from of it for C; the thread's own was entered with
 * word
 * @left of that. */
static void call_c(struct world *w, size_t left, size_t from)
{
	size_t slot = ((((OWN + 8 * left) - 64) & ~15ull) - 8 - OWN) / 8;

	w->own[slot] = CALLED;
	w->own[slot + 1 + 6] = G;
	w->own[slot + 1 + 5] = (NR_PART - from) * 8;
}

static void begin(struct world *w, size_t left, size_t from)
{
	memset(w, 0, sizeof(*w));
	w->stacks = go_stacks_new();
	assert_non_null(w->stacks);
	for (size_t i = 0; i < NR_OWN; i++)
		w->own[i] = 0x6000000 + i;
	for (size_t i = 0; i < NR_PART; i++)
		w->part.words[i] = of_part(i);
	call_c(w, left, from);
	w->part.head = (struct event_part){.id = ID,
					   .g = G,
					   .left = OWN + 8 * left,
					   .sp = OTHER + 8 * from,
					   .hi = OTHER + 8 * NR_PART,
					   .len = (NR_PART - from) * 8};
	memmove(w->part.words, w->part.words + from, (NR_PART - from) * 8);
}

static bool join(struct world *w, struct go_stack *s)
{
	*s = (struct go_stack){.sp = OWN,
			       .bytes = (const uint8_t *)w->own,
			       .len = sizeof(w->own),
			       .flags = DWUNW_EVENT_RETURN_ADDRESS};
	return go_stacks_keep(w->stacks, &w->part.head, sizeof(w->part)) &&
	       go_stacks_join(w->stacks, &program, ID, 65536, s);
}

static uint64_t word(const struct go_stack *s, size_t i)
{
	uint64_t value;

	assert_true((i + 1) * 8 <= s->len);
	memcpy(&value, s->bytes + i * 8, sizeof(value));
	return value;
}

static void test_a_call(void **state)
{
	struct world w;
	struct go_stack s;

	(void)state;
	begin(&w, 40, 10);
	assert_true(join(&w, &s));
	assert_true(s.flags & DWUNW_EVENT_STACK_JOINED);
	/* up to the return address at 31, and the frame of 8 words, all is the thread's own */
	assert_true(word(&s, 30) == 0x6000000 + 30 && word(&s, 31) == CALLED);
	for (size_t i = 0; i < NR_PART - 10; i++)
		assert_true(word(&s, 40 + i) == of_part(10 + i));
	assert_int_equal(s.len, (40 + NR_PART - 10) * 8);
	/* what was told belongs to one allocation alone */
	assert_false(go_stacks_join(w.stacks, &program, ID, 65536, &s));
	go_stacks_free(w.stacks);
}

static void test_what_is_not_as_noted(void **state)
{
	struct world w;
	struct go_stack s;

	(void)state;
	for (int i = 0; i < 5; i++) {
		begin(&w, 40, 10);
		if (i == 0)
			w.own[31]++;
		else if (i == 1)
			w.own[32 + 6]++;
		else if (i == 2)
			w.own[32 + 5] -= 8;
		else if (i == 3)
			w.part.head.left += 16;
		else
			w.part.head.id++;
		assert_false(join(&w, &s));
		assert_true(s.bytes == (const uint8_t *)w.own && s.len == sizeof(w.own));
		go_stacks_free(w.stacks);
	}
}

/* The inner call was made from a goroutine that C has called, which an outer call of C did. */
static void call_back(struct world *w)
{
	begin(w, 40, 10);
	w->own[40] = OWN + 8 * 100; /* the own stack's pointer before */
	w->own[40 + 4] = CROSS + 8;
	w->own[60] = OWN + 8 * 70; /* a frame pointer */
	call_c(w, 100, 40);
	w->part.words[40 - 1 - 4 - 1 - 10] = BACK;
}

static void test_a_call_back(void **state)
{
	struct world w;
	struct go_stack s;
	const size_t frame = 35, up = 40 + frame - 10; /* in the goroutine's, and joined */

	(void)state;
	call_back(&w);
	assert_true(join(&w, &s));
	assert_true(word(&s, up - 1) == BACK);
	assert_true(word(&s, up + 4) == CROSS + 8);
	assert_true(word(&s, up + 20) == OWN + 8 * (up + 30));
	assert_true(word(&s, up + 91 - 40) == CALLED);
	assert_true(word(&s, up + 100 - 40) == of_part(40));
	assert_int_equal(s.len, (up + 60 + NR_PART - 40) * 8);
	assert_false(s.flags & DWUNW_EVENT_STACK_ELSEWHERE);
	go_stacks_free(w.stacks);
}

static void test_a_call_back_that_is_not_known(void **state)
{
	struct world w;
	struct go_stack s;

	(void)state;
	call_back(&w);
	w.own[91]++;				   /* there was no outer call, */
	w.part.words[5] = w.part.words[25] = BACK; /* and two callbacks, or what is left of one */
	assert_true(join(&w, &s));
	assert_true(s.flags & DWUNW_EVENT_STACK_ELSEWHERE);
	assert_int_equal(s.len, (40 + 6) * 8); /* up to the first */
	go_stacks_free(w.stacks);
}

static void test_hostile_records(void **state)
{
	static const uint64_t wrong[] = {0, 8, 1ull << 47, UINT64_MAX, OWN, OTHER, OWN + 8 * 127};
	struct world w;
	struct go_stack s;

	(void)state;
	for (size_t i = 0; i < NR_OWN + sizeof(w.part) / 8; i++)
		for (size_t k = 0; k < sizeof(wrong) / 8; k++) {
			call_back(&w);
			if (i < NR_OWN)
				w.own[i] = wrong[k];
			else
				((uint64_t *)&w.part)[i - NR_OWN] = wrong[k];
			if (join(&w, &s))
				assert_true(s.len <= 65536 && s.len % 8 == 0);
			go_stacks_free(w.stacks);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call),
		cmocka_unit_test(test_what_is_not_as_noted),
		cmocka_unit_test(test_a_call_back),
		cmocka_unit_test(test_a_call_back_that_is_not_known),
		cmocka_unit_test(test_hostile_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
