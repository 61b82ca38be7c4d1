/* test_record_filters.c - what filters the command line asks for, and how samples are drawn */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/filter/filters.h"

#define DIGITS 40

/* The chance that a number with such binary digits is less than @limit, added up over the numbers
 * that begin as @limit does and have a 0 where it has a 1. */
static double chance_below(const uint32_t *digits, uint64_t limit)
{
	double below = 0, same = 1;

	for (int i = DIGITS - 1; i >= 0; i--) {
		double one = ldexp(digits[i], -32);

		if (limit >> i & 1) {
			below += same * (1 - one);
			same *= one;
		} else {
			same *= 1 - one;
		}
	}
	return below;
}

/* filters_parse() of the option with the key @key. */
static int apply_filter(struct filter_opts *f, int key, const char *text)
{
	struct option_info o;

	for (size_t i = 0; record_option(i, &o); i++)
		if (o.key == key)
			return filters_parse(f, &o, text);
	return -ENOENT;
}

static void check_chance(const uint32_t *digits, uint64_t weight, double expected)
{
	double chance = chance_below(digits, weight);

	if (fabs(chance / expected - 1) > 1e-7)
		fail_msg("weight %llu: chance %.12g, not %.12g", (unsigned long long)weight, chance,
			 expected);
}

static void one_of_n_is_sampled(void **state)
{
	static const uint64_t every[] = {2, 3, 10, 97, 100, 1000, 1000000, FILTERS_MAX_MEAN};
	uint32_t digits[DIGITS];

	(void)state;
	for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		filters_digits(filters_mean_of(every[i]), digits, DIGITS);
		check_chance(digits, 1, 1 / (double)every[i]);
		/* the next sample is as far away, whatever was passed over: a unit later likewise
		 */
		check_chance(digits, 7, -expm1(7 * log1p(-1 / (double)every[i])));
	}
}

static void a_block_is_sampled_by_its_bytes(void **state)
{
	static const uint64_t means[] = {16, 4096, 100000, 512 << 10, FILTERS_MAX_MEAN};
	static const uint64_t sizes[] = {1, 16, 17, 1000, 4096, 99999, 1 << 20, 1ull << 32};
	uint32_t digits[DIGITS];

	(void)state;
	for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++) {
		filters_digits((double)means[m], digits, DIGITS);
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			check_chance(digits, sizes[s],
				     -expm1(-(double)sizes[s] / (double)means[m]));
	}
}

static void sample(const char *text, int err, uint64_t every, uint64_t bytes)
{
	struct filter_opts f = {.sample_every = 3, .sample_bytes = 3};

	assert_int_equal(apply_filter(&f, 's', text), err);
	if (err)
		return;
	assert_int_equal(f.sample_every, every);
	assert_int_equal(f.sample_bytes, bytes);
}

static void a_number_counts_allocations_and_one_with_a_unit_bytes(void **state)
{
	static const char *const wrong[] = {
		"",    "0",    "0K",  "-1", "x",  "K",	  "1.5",
		"1KK", "1KBx", "1Bx", "2G", "1T", "100 ", "9999999999999999999999"};

	(void)state;
	sample("100", 0, 100, 0);
	sample("1", 0, 0, 0); /* all */
	sample("512K", 0, 0, 512 << 10);
	sample("512KB", 0, 0, 512 << 10);
	sample("4096B", 0, 0, 4096);
	sample("1g", 0, 0, 1 << 30);
	sample("1mb", 0, 0, 1 << 20);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		sample(wrong[i], -EINVAL, 0, 0);
}

static void sizes_are_refused_that_no_block_has(void **state)
{
	struct filter_opts f = {0};

	(void)state;
	assert_int_equal(apply_filter(&f, 'z', "1K"), 0);
	assert_int_equal(apply_filter(&f, 'Z', "1023"), 0);
	assert_int_equal(filters_check(&f, NULL, 0), -EINVAL);
	assert_int_equal(apply_filter(&f, 'Z', "1024"), 0);
	assert_int_equal(filters_check(&f, NULL, 0), 0);
	assert_int_equal(apply_filter(&f, 'z', "0"), -EINVAL);
	assert_int_equal(apply_filter(&f, 'Z', "64X"), -EINVAL);
}

static void threads_are_named_by_number_in_a_process_that_has_them(void **state)
{
	pid_t parent_and_self[] = {getppid(), getpid()};
	struct filter_opts f = {0};
	char text[16];

	(void)state;
	assert_int_equal(apply_filter(&f, FILTER_TID, "main"), -EINVAL);
	assert_int_equal(apply_filter(&f, FILTER_TID, "0"), -EINVAL);
	snprintf(text, sizeof(text), "%d", getpid());
	assert_int_equal(apply_filter(&f, FILTER_TID, text), 0);
	assert_int_equal(filters_check(&f, parent_and_self, 2), 0);
	assert_int_equal(filters_check(&f, NULL, 0), -EINVAL); /* a command has none yet */
	assert_int_equal(filters_check(&f, parent_and_self, 1), -EINVAL); /* it is not its thread */
	while (f.nr_tids < FILTERS_MAX_TIDS)
		assert_int_equal(apply_filter(&f, FILTER_TID, text), 0);
	assert_int_equal(apply_filter(&f, FILTER_TID, text), -EINVAL);
}

static void without_options_nothing_is_left_out(void **state)
{
	static const struct {
		int key;
		const char *text;
	} options[] = {{'z', "2"},	 {'Z', "2"},  {'s', "2"},
		       {'s', "2B"},	 {'D', "1s"}, {FILTER_TRIGGER, "1"},
		       {FILTER_TID, "1"}};
	struct filter_opts none = {0};

	(void)state;
	assert_false(filters_any(&none));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct filter_opts f = {0};

		assert_int_equal(apply_filter(&f, options[i].key, options[i].text), 0);
		assert_true(filters_any(&f));
	}
}

static void a_trigger_is_of_a_thread_a_process_or_a_call_site(void **state)
{
	struct filter_opts f = {0};

	(void)state;
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "process:64K"), 0);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "site:5M"), 0);
	assert_int_equal(f.trigger_bytes, 0);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "7"), 0);
	assert_int_equal(f.trigger_bytes, 7);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "thread:8"), 0);
	assert_int_equal(f.trigger_bytes, 8);
	assert_int_equal(f.trigger_process, 64 << 10);
	assert_int_equal(f.trigger_site, 5 << 20);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "process:"), -EINVAL);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "site:0"), -EINVAL);
	assert_int_equal(apply_filter(&f, FILTER_TRIGGER, "program:1M"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trigger_is_of_a_thread_a_process_or_a_call_site),
		cmocka_unit_test(one_of_n_is_sampled),
		cmocka_unit_test(a_block_is_sampled_by_its_bytes),
		cmocka_unit_test(a_number_counts_allocations_and_one_with_a_unit_bytes),
		cmocka_unit_test(sizes_are_refused_that_no_block_has),
		cmocka_unit_test(threads_are_named_by_number_in_a_process_that_has_them),
		cmocka_unit_test(without_options_nothing_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
