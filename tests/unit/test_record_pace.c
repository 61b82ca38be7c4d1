/* test_record_pace.c - who waited for a processor pauses for some times as long; who slept does not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "record/reach/pace.h"

#define SLEPT_NS UINT64_C(20000000)

/* What began with @p, and had no processor for a while. */
static void have_none(void)
{
	const struct timespec ts = {.tv_nsec = (long)SLEPT_NS};

	assert_int_equal(nanosleep(&ts, NULL), 0);
}

static void test_who_waited_pauses(void **state)
{
	struct pace p = pace_begin();

	(void)state;
	have_none();
	assert_true(pace_pause(&p) >= 4 * SLEPT_NS);
	/* an hour ago */
	p.begin_ns -= UINT64_C(3600000000000);
	assert_true(pace_pause(&p) == UINT64_C(10000000000));
}

static void test_who_slept_does_not(void **state)
{
	struct pace p = pace_begin();

	(void)state;
	have_none();
	/* as long as it wanted, and another minute, whatever the machine did */
	p.slept_ns = UINT64_C(60000000000);
	assert_int_equal(pace_pause(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waited_pauses),
		cmocka_unit_test(test_who_slept_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
