/* test_record_walk.c - walks through a process's pages: when, and in a thread of its own */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/base/clock.h"
#include "record/target/memory_walker.h"
#include "record/target/walk_plan.h"

#define MIB UINT64_C(1048576)
#define S   UINT64_C(1000000000)

static bool allowed(const struct walk_plan *plan, uint64_t bytes, size_t mappings, uint64_t now_ns)
{
	return walk_is_allowed(plan, &(struct walk_size){bytes, mappings}, now_ns);
}

static void note(struct walk_plan *plan, uint64_t bytes, size_t mappings, uint64_t took_ns,
		 uint64_t now_ns)
{
	walk_note(plan, &(struct walk_size){bytes, mappings}, took_ns, now_ns);
}

/* 91 ns a page were measured, and 1 us a mapping. */
static void what_was_never_walked_through_is_guessed(void **state)
{
	const struct walk_plan none = {0};

	(void)state;
	assert_true(allowed(&none, 100 * MIB, 100, S));
	assert_false(allowed(&none, 180 * MIB, 100, S)); /* 4.2 ms */
	assert_true(allowed(&none, 10 * MIB, 3000, S));
	assert_false(allowed(&none, 10 * MIB, 5000, S));
}

static void growth_adds_to_the_last_walk(void **state)
{
	struct walk_plan plan = {0};

	(void)state;
	note(&plan, 100 * MIB, 100, 2300000, S);
	assert_true(allowed(&plan, 140 * MIB, 100, 2 * S));
	assert_false(allowed(&plan, 190 * MIB, 100, 2 * S));
	assert_false(allowed(&plan, 100 * MIB, 2500, 2 * S));
	/* it took less than it was guessed: huge pages */
	note(&plan, 1000 * MIB, 100, 300000, S);
	assert_true(allowed(&plan, 1000 * MIB, 100, 2 * S));
}

static void one_long_walk_puts_the_next_one_off(void **state)
{
	struct walk_plan plan = {0};
	uint64_t now_ns = S, pause_ns = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t least_ns = pause_ns;

		note(&plan, 150 * MIB, 100, 5000000, now_ns);
		assert_false(allowed(&plan, 150 * MIB, 100, now_ns + S));
		for (pause_ns = S; !allowed(&plan, 150 * MIB, 100, now_ns + pause_ns);)
			pause_ns += S;
		assert_in_range(pause_ns, least_ns, 1200 * S);
		if (least_ns && least_ns < 500 * S)
			assert_in_range(pause_ns, least_ns + least_ns / 2, 3 * least_ns);
		now_ns += pause_ns;
	}
	/* much has come since: no pause makes that shorter */
	assert_false(allowed(&plan, 400 * MIB, 100, now_ns + 5000 * S));
	/* a short one, and all is as at first */
	note(&plan, 150 * MIB, 100, 3000000, now_ns);
	assert_true(allowed(&plan, 150 * MIB, 100, now_ns + 1));
}

static void what_became_smaller_is_walked_through_at_once(void **state)
{
	struct walk_plan plan = {0};

	(void)state;
	note(&plan, 150 * MIB, 1000, 6000000, S);
	assert_true(allowed(&plan, 50 * MIB, 1000, S + 1));
	/* its mappings may all be there */
	note(&plan, 150 * MIB, 5500, 6000000, S);
	assert_false(allowed(&plan, 50 * MIB, 5500, S + 1));
}

/* The file of a process that holds its lock is like a pipe into which nobody writes. */
static void who_asks_does_not_wait(void **state)
{
	static const char text[] = "Rss: 12 kB\nPss:                  47 kB\nLazyFree: 3 kB\n";
	struct memory_walker *w;
	struct memory_walk walk;
	uint64_t begin_ns;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(memory_walker_new(&w), 0);
	assert_false(memory_walker_take(w, 0, &walk));
	memory_walker_ask(w, ends[0]);
	assert_false(memory_walker_take(w, 0, &walk));
	begin_ns = clock_now_ns();
	assert_false(memory_walker_take(w, 30000000, &walk));
	assert_true(clock_now_ns() - begin_ns >= 30000000);
	begin_ns = clock_now_ns();
	assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
	close(ends[1]);
	assert_true(memory_walker_take(w, 60 * S, &walk));
	/* what waits takes no time of a processor */
	assert_true(walk.took_ns < 30000000);
	assert_true(walk.sample.time_ns >= begin_ns);
	assert_true(walk.sample.known >> MLK_MEMORY_PSS & 1);
	assert_int_equal(walk.sample.value[MLK_MEMORY_PSS], 47 << 10);
	assert_int_equal(walk.sample.value[MLK_MEMORY_LAZY_FREE], 3 << 10);
	assert_false(walk.sample.known >> MLK_MEMORY_RSS & 1);
	assert_false(memory_walker_take(w, 0, &walk));
	memory_walker_free(w);
}

static void who_ends_does_not_wait(void **state)
{
	struct memory_walker *w;
	uint64_t begin_ns;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(memory_walker_new(&w), 0);
	memory_walker_ask(w, ends[0]);
	begin_ns = clock_now_ns();
	memory_walker_free(w);
	assert_true(clock_now_ns() - begin_ns < 10 * S);
	/* the thread goes on until it has read, closes the file, and ends */
	close(ends[1]);
	while (fcntl(ends[0], F_GETFD) >= 0)
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_never_walked_through_is_guessed),
		cmocka_unit_test(growth_adds_to_the_last_walk),
		cmocka_unit_test(one_long_walk_puts_the_next_one_off),
		cmocka_unit_test(what_became_smaller_is_walked_through_at_once),
		cmocka_unit_test(who_asks_does_not_wait),
		cmocka_unit_test(who_ends_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
