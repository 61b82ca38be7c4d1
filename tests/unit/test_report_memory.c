/* test_report_memory.c - samples of memory, as a report keeps them */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/trace/memory_samples.h"

#define SECOND 1000000000ull

static void note(struct memory_samples *all, uint32_t tgid, uint64_t second, uint64_t rss)
{
	const struct mlk_memory sample = {.tgid = tgid,
					  .time_ns = second * SECOND,
					  .known = 1 << MLK_MEMORY_RSS,
					  .value = {[MLK_MEMORY_RSS] = rss}};

	assert_int_equal(memory_samples_note(all, &sample), 0);
}

static void note_error(struct memory_samples *all, uint32_t tgid, uint64_t second, uint32_t error)
{
	const struct mlk_memory sample = {.tgid = tgid, .time_ns = second * SECOND, .error = error};

	assert_int_equal(memory_samples_note(all, &sample), 0);
}

/* RSS of all processes at @second; UINT64_MAX: not known. */
static uint64_t rss_at(const struct memory_samples *all, uint64_t second)
{
	uint64_t bytes;

	return memory_samples_at(all, MLK_MEMORY_RSS, second * SECOND, &bytes) ? bytes : UINT64_MAX;
}

static bool is_seven(void *arg, uint32_t tgid)
{
	return tgid == 7 && arg == (void *)&is_seven;
}

static void processes_are_forgotten(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	note(&all, 7, 10, 100);
	note(&all, 8, 10, 3000);
	note(&all, 0, 10, 99999);
	memory_samples_forget(&all, is_seven, (void *)&is_seven);
	assert_int_equal(all.nr, 2);
	assert_null(memory_samples_find(&all, 7));
	assert_non_null(memory_samples_find(&all, 0));
	assert_int_equal(rss_at(&all, 11), 3000);
	memory_samples_release(&all);
}

static void processes_add_up_while_they_live(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	note(&all, 7, 10, 100);
	note(&all, 0, 10, 99999);
	note(&all, 8, 12, 3000);
	note(&all, 7, 14, 200);
	note_error(&all, 7, 16, ESRCH);
	assert_int_equal(rss_at(&all, 9), UINT64_MAX);
	assert_int_equal(rss_at(&all, 10), 100);
	assert_int_equal(rss_at(&all, 11), 100);
	assert_int_equal(rss_at(&all, 12), 3100);
	assert_int_equal(rss_at(&all, 15), 3200);
	assert_int_equal(rss_at(&all, 16), 3000);
	note(&all, 7, 18, 1); /* another process with that number */
	assert_int_equal(rss_at(&all, 17), 3000);
	assert_int_equal(rss_at(&all, 18), 3001);
	note(&all, 8, 19, UINT64_MAX);
	assert_int_equal(rss_at(&all, 19), UINT64_MAX);
	memory_samples_release(&all);
}

static void failures_are_counted_and_leave_the_value(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	note(&all, 7, 1, 100);
	note_error(&all, 7, 2, EACCES);
	note_error(&all, 7, 3, EPERM);
	note_error(&all, 7, 4, ESRCH);
	assert_int_equal(memory_samples_find(&all, 7)->taken, 4);
	assert_int_equal(memory_samples_find(&all, 7)->failed, 2);
	assert_int_equal(memory_samples_find(&all, 7)->error, EACCES);
	assert_int_equal(rss_at(&all, 3), 100);
	assert_null(memory_samples_find(&all, 8));
	memory_samples_release(&all);
}

/* First and last are there, whatever was left out between them, and the times ascend. */
static void many_are_thinned_out(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	for (uint64_t i = 0; i < 10 * MEMORY_SAMPLES_MAX + 7; i++) {
		const struct memory_process *p;

		note(&all, 7, i, i);
		p = memory_samples_find(&all, 7);
		assert_true(p->nr <= MEMORY_SAMPLES_MAX);
		assert_true(p->nr > MEMORY_SAMPLES_MAX / 2 || p->nr == i + 1);
		assert_int_equal(p->taken, i + 1);
		assert_int_equal(p->all[0].time_ns, 0);
		assert_int_equal(p->all[p->nr - 1].time_ns, i * SECOND);
		for (size_t k = 0; k + 1 < p->nr; k++)
			assert_int_equal(p->all[k].value[MLK_MEMORY_RSS], k * p->stride);
	}
	memory_samples_release(&all);
}

static void what_a_later_version_samples_is_no_failure(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	note(&all, 7, 1, 100);
	note_error(&all, 7, 2, 0); /* the reader left out the values that it does not know */
	note(&all, 7, 3, 200);
	assert_int_equal(memory_samples_find(&all, 7)->taken, 3);
	assert_int_equal(memory_samples_find(&all, 7)->failed, 0);
	assert_int_equal(rss_at(&all, 2), 100);
	memory_samples_release(&all);
}

/* The number comes again and again, each time for one sample and a time that is longer. */
static void ends_are_kept_when_others_are_not(void **state)
{
	struct memory_samples all = {0};
	const uint64_t life = 97, pause = 50;
	uint64_t ends = 0;

	(void)state;
	for (uint64_t at = 0; at < 20 * MEMORY_SAMPLES_MAX; at += life + pause) {
		for (uint64_t i = 0; i < life; i++)
			note(&all, 7, at + i, 5);
		note_error(&all, 7, at + life, ESRCH);
		ends++;
		assert_true(memory_samples_find(&all, 7)->nr <= MEMORY_SAMPLES_MAX);
	}
	for (uint64_t i = 0; i + 1 < ends; i++) {
		assert_int_equal(rss_at(&all, i * (life + pause) + life - 1), 5);
		assert_int_equal(rss_at(&all, i * (life + pause) + life), UINT64_MAX);
		assert_int_equal(rss_at(&all, (i + 1) * (life + pause) - 1), UINT64_MAX);
	}
	memory_samples_release(&all);
}

/* Who makes up such a trace takes no more memory by it. */
static void ends_alone_are_bounded(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	for (uint64_t i = 0; i < 10 * MEMORY_SAMPLES_MAX; i++) {
		note(&all, 7, 2 * i, 5);
		note_error(&all, 7, 2 * i + 1, ESRCH);
		note_error(&all, 8, i, ESRCH);
		assert_true(memory_samples_find(&all, 7)->nr <= MEMORY_SAMPLES_MAX);
		assert_true(memory_samples_find(&all, 8)->nr <= MEMORY_SAMPLES_MAX);
		assert_int_equal(rss_at(&all, 2 * i), 5);
		assert_int_equal(rss_at(&all, 2 * i + 1), UINT64_MAX);
	}
	memory_samples_release(&all);
}

static void times_and_processes_are_bounded(void **state)
{
	struct memory_samples all = {0};

	(void)state;
	note(&all, 1, 10, 1);
	note(&all, 1, 5, 2); /* it runs backwards */
	assert_int_equal(memory_samples_find(&all, 1)->all[1].time_ns, 10 * SECOND);
	for (uint32_t tgid = 2; tgid < MEMORY_PROCESSES_MAX + 4; tgid++)
		note(&all, tgid, 11, 3);
	assert_int_equal(all.nr, MEMORY_PROCESSES_MAX);
	assert_int_equal(all.left_out, 3);
	memory_samples_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_add_up_while_they_live),
		cmocka_unit_test(processes_are_forgotten),
		cmocka_unit_test(failures_are_counted_and_leave_the_value),
		cmocka_unit_test(many_are_thinned_out),
		cmocka_unit_test(what_a_later_version_samples_is_no_failure),
		cmocka_unit_test(ends_are_kept_when_others_are_not),
		cmocka_unit_test(ends_alone_are_bounded),
		cmocka_unit_test(times_and_processes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
