/* test_inject_threads.c - which words of a stack mean that a thread is in the code */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/inject/threads.h"

#define BASE	 0x10000u /* of the image, and where it is in the file that is its memory */
#define TEXT_END 4096
#define THREADS	 8192 /* offsets behind BASE */
#define INJECTED 16384
#define SP	 0x7000

/* A thread outside of the image, with one word on its stack. */
struct world {
	struct inject_inside inside;
	struct injected injected;
	uint8_t text[TEXT_END];
};

static int world_begin(void **state)
{
	static struct world world; /* aligned as no allocation is */
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->inside = (struct inject_inside){.mem = memfd_create("memory", 0),
					   .base = BASE,
					   .head = {.text_end = TEXT_END,
						    .threads = THREADS,
						    .nr_threads = 2,
						    .injected = INJECTED},
					   .injected = &w->injected,
					   .text = w->text};
	assert_return_code(w->inside.mem, 0);
	assert_return_code(ftruncate(w->inside.mem, BASE + INJECTED + (off_t)sizeof(w->injected)),
			   0);
	memset(w->text, 0x90, sizeof(w->text));
	*state = w;
	return 0;
}

static int world_end(void **state)
{
	struct world *w = *state;

	close(w->inside.mem);
	return 0;
}

static bool is_inside(struct world *w, uint64_t word)
{
	struct inject_thread t = {.words = &word, .nr = 1};

	t.regs.rip = SP;
	t.regs.fs_base = 1;
	return inject_threads_inside(&w->inside, &t) || inject_threads_inside(&w->inside, NULL);
}

/* Put @call into the text.  Returns the address behind it. */
static uint64_t put_call(struct world *w, const uint8_t *call, size_t len)
{
	memset(w->text, 0x90, sizeof(w->text));
	memcpy(w->text + 100, call, len);
	return BASE + 100 + len;
}

#define BEHIND(w, ...) \
	put_call(w, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void a_return_address_that_was_left_behind_is_no_call(void **state)
{
	struct world *w = *state;

	assert_false(is_inside(w, BEHIND(w, 0xe8, 1, 2, 3, 4)));
	assert_false(is_inside(w, BEHIND(w, 0xff, 0xd0)));			/* *%rax */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x11)));			/* *(%rcx) */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x14, 0xc8)));		/* an index */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x50, 8)));			/* *8(%rax) */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x54, 0x24, 8)));		/* *8(%rsp) */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x15, 1, 2, 3, 4)));		/* rip */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x91, 1, 2, 3, 4)));		/* of 32 bits */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x94, 0x01, 0x10, 8, 0, 0))); /* both */
	assert_false(is_inside(w, BEHIND(w, 0xff, 0x14, 0xc5, 0x10, 8, 0, 0))); /* no base */
	assert_false(is_inside(w, BEHIND(w, 0x41, 0xff, 0x94, 0xc4, 0x10, 8, 0, 0))); /* REX */
}

static void any_other_address_of_the_code_is(void **state)
{
	struct world *w = *state;

	assert_true(is_inside(w, BASE + 50));
	assert_true(is_inside(w, BEHIND(w, 0xe8, 1, 2, 3, 4) - 1));
	assert_true(is_inside(w, BEHIND(w, 0xe8, 1, 2, 3, 4) + 1));
	assert_true(is_inside(w, BEHIND(w, 0xff, 0xe0)));	      /* a jump */
	assert_true(is_inside(w, BEHIND(w, 0xff, 0x14)));	      /* its end is missing */
	assert_true(is_inside(w, BEHIND(w, 0xff, 0x54, 0x24)));	      /* the same */
	assert_true(is_inside(w, BEHIND(w, 0xff, 0x94, 1, 2, 3, 4))); /* the same */
	assert_false(is_inside(w, BASE + TEXT_END));
	assert_false(is_inside(w, BASE - 1));
}

static void a_note_tells_that_a_call_is_under_way(void **state)
{
	struct world *w = *state;
	const struct injected_thread note = {.tcb = 1, .inside = 1};

	assert_false(is_inside(w, 0));
	assert_int_equal(pwrite(w->inside.mem, &note, sizeof(note), BASE + THREADS), sizeof(note));
	assert_true(is_inside(w, 0));
}

static void a_thread_without_a_note_may_be_anywhere(void **state)
{
	struct world *w = *state;
	const uint64_t one = 1;
	const off_t at = BASE + INJECTED + (off_t)offsetof(struct injected, nr_strangers);

	assert_int_equal(pwrite(w->inside.mem, &one, sizeof(one), at), sizeof(one));
	assert_true(is_inside(w, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_return_address_that_was_left_behind_is_no_call,
						world_begin, world_end),
		cmocka_unit_test_setup_teardown(any_other_address_of_the_code_is, world_begin,
						world_end),
		cmocka_unit_test_setup_teardown(a_note_tells_that_a_call_is_under_way, world_begin,
						world_end),
		cmocka_unit_test_setup_teardown(a_thread_without_a_note_may_be_anywhere,
						world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
