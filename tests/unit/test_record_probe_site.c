/* test_record_probe_site.c - a probe stands on an emulated instruction, and never inside one */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/probe_site.h"

#define FUNC 64 /* where the function begins in the code made up here */
#define LEN  64

/* Code of nops (0x90 would be emulated: int3, 0xcc, is not) with @func in the middle. */
static struct probe_site find(uint8_t *text, size_t size, const uint8_t *func, size_t len)
{
	memset(text, 0xcc, size);
	memcpy(text + FUNC, func, len);
	return probe_site_find(text, size, FUNC, LEN);
}

#define FIND(text, ...)                                          \
	find(text, sizeof(text), (const uint8_t[]){__VA_ARGS__}, \
	     sizeof((const uint8_t[]){__VA_ARGS__}))

static void check(struct probe_site site, size_t offset, bool emulated)
{
	assert_int_equal(site.offset, offset);
	assert_int_equal(site.emulated, emulated);
}

static void glibc_2_36_entries_are_known(void **state)
{
	uint8_t text[256];

	(void)state;
	/* As objdump -d shows them in Debian 12's libc.so.6. */
	check(FIND(text, 0x41, 0x54, 0x55), 0, true); /* malloc: push %r12 */
	check(FIND(text, 0x48, 0x85, 0xff, 0x0f, 0x84, 1, 2, 3, 0), 3, true); /* free: test; je */
	check(FIND(text, 0x80, 0x3d, 0x01, 0x02, 0x14, 0x00, 0x00, 0x41, 0x54), 7,
	      true); /* posix_memalign: cmpb $0,..(%rip); push %r12 */
}

static void endbr64_is_stepped_over(void **state)
{
	uint8_t text[256];

	(void)state;
	check(FIND(text, 0xf3, 0x0f, 0x1e, 0xfa, 0x55), 4, true);
	check(FIND(text, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x10), 7, true);
	check(FIND(text, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08), 0,
	      false); /* sub $8,%rsp */
}

static void what_changes_an_argument_or_the_stack_is_not_stepped_over(void **state)
{
	uint8_t text[256];

	(void)state;
	check(FIND(text, 0x48, 0x83, 0xec, 0x18, 0x55), 0, false); /* sub $24,%rsp; push */
	check(FIND(text, 0x31, 0xff, 0x55), 0, false);		   /* xor %edi,%edi; push */
	check(FIND(text, 0x48, 0x85, 0xf7, 0x74, 0x10), 0,
	      false); /* test %rsi,%rdi: not the pattern */
	check(FIND(text, 0x48, 0x85, 0x3d, 0x74, 0x10), 0, false); /* test with memory */
}

static void a_site_that_is_jumped_to_is_refused(void **state)
{
	static const uint8_t free_entry[] = {0x48, 0x85, 0xff, 0x74, 0x20};
	uint8_t text[70000];
	size_t site = FUNC + 3;

	(void)state;
	check(find(text, sizeof(text), free_entry, sizeof(free_entry)), 3, true);
	/* jmp rel8 from within the function, jmp rel32 from far behind, je rel32 from before */
	text[FUNC + 40] = 0xeb;
	text[FUNC + 41] = (uint8_t)(site - (FUNC + 42));
	check(probe_site_find(text, sizeof(text), FUNC, LEN), 0, false);
	text[FUNC + 40] = 0xcc;
	check(probe_site_find(text, sizeof(text), FUNC, LEN), 3, true);
	text[60000] = 0xe9;
	for (int i = 0; i < 4; i++)
		text[60001 + i] = (uint8_t)((uint32_t)(site - 60005) >> 8 * i);
	check(probe_site_find(text, sizeof(text), FUNC, LEN), 0, false);
	text[60000] = 0xcc;
	text[10] = 0x0f;
	text[11] = 0x84;
	for (int i = 0; i < 4; i++)
		text[12 + i] = (uint8_t)((uint32_t)(site - 16) >> 8 * i);
	check(probe_site_find(text, sizeof(text), FUNC, LEN), 0, false);
}

static void short_or_outlying_functions_are_safe(void **state)
{
	static const uint8_t code[] = {0x48, 0x85, 0xff};

	(void)state;
	check(probe_site_find(code, sizeof(code), 0, 3), 0, false);
	check(probe_site_find(code, sizeof(code), 0, 2), 0, false);
	check(probe_site_find(code, sizeof(code), 0, 0), 0, false);
	check(probe_site_find(code, sizeof(code), 0, 4), 0, false);
	check(probe_site_find(code, sizeof(code), 3, 1), 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glibc_2_36_entries_are_known),
		cmocka_unit_test(endbr64_is_stepped_over),
		cmocka_unit_test(what_changes_an_argument_or_the_stack_is_not_stepped_over),
		cmocka_unit_test(a_site_that_is_jumped_to_is_refused),
		cmocka_unit_test(short_or_outlying_functions_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
