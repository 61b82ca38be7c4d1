/* test_bpf_condition.c - a jump is taken by the same flags as the processor's setcc is set */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/condition.h"

#define CHECK(number, condition)                                                                 \
	do {                                                                                     \
		uint8_t set;                                                                     \
		__asm__ volatile("pushf; andq %2, (%%rsp); orq %1, (%%rsp); popf; set" condition \
				 " %0"                                                           \
				 : "=q"(set)                                                     \
				 : "r"(flags), "r"(~(uint64_t)ALL)                               \
				 : "cc", "memory");                                              \
		assert_int_equal(is_taken(flags, number), set);                                  \
		taken += set;                                                                    \
	} while (0)

enum { ALL = CARRY | PARITY | ZERO | SIGN | OVERFLOW };

/* The names of the conditions in the order of their numbers. */
static void each_condition_is_as_the_processor_has_it(void **state)
{
	unsigned int taken = 0;

	(void)state;
	for (uint64_t flags = 0; flags <= ALL; flags++) {
		if (flags & ~(uint64_t)ALL)
			continue;
		CHECK(0, "o");
		CHECK(1, "no");
		CHECK(2, "b");
		CHECK(3, "ae");
		CHECK(4, "e");
		CHECK(5, "ne");
		CHECK(6, "be");
		CHECK(7, "a");
		CHECK(8, "s");
		CHECK(9, "ns");
		CHECK(10, "p");
		CHECK(11, "np");
		CHECK(12, "l");
		CHECK(13, "ge");
		CHECK(14, "le");
		CHECK(15, "g");
	}
	assert_int_equal(taken, 32 * 16 / 2); /* 32 ways to set the flags, half taken */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_condition_is_as_the_processor_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
