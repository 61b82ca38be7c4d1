/* test_preload_clock.c - the times of a preloaded library, whatever clock the kernel has */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/base/clock.h"
#include "record/preload/ring/preload_clock.h"

#define FAR   400000000u /* ns; longer than the clock is not looked at */
#define ABOUT 40000000u	 /* its rate is first known by 4 ms, on a machine that may be busy */

/* A clock where the kernel says @says of its clocksource; NULL: there is no such file. */
static struct preload_clock clock_of(const char *says)
{
	char path[] = "/tmp/mleak-clock-XXXXXX";
	int fd = mkstemp(path);
	struct preload_clock c;

	assert_true(fd >= 0);
	if (says)
		assert_int_equal(write(fd, says, strlen(says)), strlen(says));
	close(fd);
	if (!says)
		unlink(path);
	memset(&c, 0xff, sizeof(c));
	preload_clock_init_from(&c, path);
	unlink(path);
	return c;
}

/* All that is asked of a clock, against the kernel's own. */
static void check_clock(struct preload_clock *c)
{
	uint64_t before = clock_now_ns(), margin = preload_clock_margin(c), now, later, ns, end;

	now = preload_clock_now(c);
	later = preload_clock_after(c, FAR);
	end = clock_now_ns();
	assert_true(later > now);
	assert_true(margin > 0 && margin < later - now);
	ns = preload_clock_ns(c, now);
	assert_in_range(ns, before - ABOUT, end + ABOUT);
	assert_in_range(preload_clock_ns(c, later), ns + FAR - ABOUT,
			ns + FAR + ABOUT + (end - before));
	/* No time goes back, whatever is asked for. */
	assert_true(preload_clock_ns(c, now) >= ns + FAR - ABOUT);
	assert_true(preload_clock_event_ns(c, 0) >= ns + FAR - ABOUT);
}

static void every_clocksource_gives_the_kernels_time(void **state)
{
	/* As kernels from 5.8 on name them; "tsc-early" is not for long. */
	static const char *const others[] = {"hpet\n",
					     "acpi_pm\n",
					     "kvm-clock\n",
					     "xen\n",
					     "jiffies\n",
					     "hyperv_clocksource_tsc_page\n",
					     "pit\n",
					     "refined-jiffies\n",
					     "hyperv_clocksource_msr\n",
					     "\n",
					     "tsc-early\n",
					     "vmware\n",
					     "",
					     "tscx\n",
					     NULL};
	struct preload_clock c = clock_of("tsc\n");

	(void)state;
	assert_true(c.is_tsc);
	check_clock(&c);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		c = clock_of(others[i]);
		assert_false(c.is_tsc);
		check_clock(&c);
	}
}

static void without_the_counter_times_are_the_kernels_own(void **state)
{
	struct preload_clock c = clock_of("hpet\n");
	uint64_t now = preload_clock_now(&c);

	(void)state;
	assert_int_equal(preload_clock_ns(&c, now), now);
	assert_int_equal(preload_clock_ns(&c, now + 1), now + 1);
	assert_int_equal(preload_clock_event_ns(&c, now + 3 * PRELOAD_CLOCK_STEP_NS),
			 (now + 3 * PRELOAD_CLOCK_STEP_NS) &
				 ~(uint64_t)(PRELOAD_CLOCK_STEP_NS - 1));
}

/* A clock that goes by ticks may be behind by one of them. */
static void the_margin_has_room_for_the_clocks_steps(void **state)
{
	struct preload_clock c = clock_of("jiffies\n");
	uint64_t margin = preload_clock_margin(&c);

	(void)state;
	c.step_ns += 4000000;
	assert_int_equal(preload_clock_margin(&c), margin + 4000000);
}

static void a_time_from_the_far_future_does_not_overflow(void **state)
{
	static const char *const all[] = {"tsc\n", "hpet\n"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct preload_clock c = clock_of(all[i]);
		uint64_t now = clock_now_ns(), far;

		preload_clock_now(&c);
		far = preload_clock_event_ns(&c, UINT64_MAX);
		assert_in_range(far, now, now + (1ull << 42));
		assert_int_equal(preload_clock_ns(&c, preload_clock_now(&c)), far);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_clocksource_gives_the_kernels_time),
		cmocka_unit_test(without_the_counter_times_are_the_kernels_own),
		cmocka_unit_test(the_margin_has_room_for_the_clocks_steps),
		cmocka_unit_test(a_time_from_the_far_future_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
