/* test_record_probe_site.c - a probe stands on an emulated instruction, and never inside one */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/code/probe_site.h"

/* Find the site in @code of a function with @nr_args arguments, which are still in their places, or
 * anywhere. */
#define FIND(nr_args, ...)                                                                      \
	probe_site_find((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), \
			nr_args, true)
#define FIND_ANYWHERE(nr_args, ...)                                                             \
	probe_site_find((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), \
			nr_args, false)

static void check(struct probe_site site, size_t offset, bool emulated)
{
	assert_int_equal(site.offset, offset);
	assert_int_equal(site.emulated, emulated);
}

static void glibc_2_36_entries_are_known(void **state)
{
	(void)state;
	/* As objdump -d shows them in Debian 12's libc.so.6. */
	check(FIND(1, 0x41, 0x54, 0x55), 0, true);			   /* malloc: push %r12 */
	check(FIND(1, 0x48, 0x85, 0xff, 0x0f, 0x84, 1, 2, 3, 0), 3, true); /* free: test; je */
	check(FIND(3, 0x80, 0x3d, 0x01, 0x02, 0x14, 0x00, 0x00, 0x41, 0x54), 7,
	      true); /* posix_memalign: cmpb $0,..(%rip); push %r12 */
	check(FIND(4, 0x41, 0x89, 0xca, 0x41, 0xf7, 0xc1, 0xff, 0x0f, 0x00, 0x00, 0x75, 0x14), 10,
	      true); /* mmap: mov %ecx,%r10d; test $0xfff,%r9d; jne */
	check(FIND(4, 0x48, 0x83, 0xec, 0x58, 0x4c, 0x89, 0x44, 0x24, 0x40), 0,
	      false); /* mremap: sub $88,%rsp */
	check(FIND(2, 0xb8, 0x0b, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x73, 0x01), 0,
	      false); /* munmap: mov $11,%eax; syscall */
}

static void glibc_2_43_entries_are_known(void **state)
{
	(void)state;
	/* As objdump -d shows them in Debian's libc.so.6 of November 2026. */
	check(FIND(1, 0x48, 0x85, 0xff, 0x78, 0x71), 3, true); /* malloc: test %rdi,%rdi; js */
	check(FIND(2, 0x48, 0x89, 0xf8, 0x48, 0xf7, 0xe6, 0x0f, 0x80, 1, 2, 0, 0), 6,
	      true); /* calloc: mov %rdi,%rax; mul %rsi; jo */
	check(FIND(3, 0x48, 0x89, 0xf0, 0x48, 0xf7, 0xe2, 0x70, 0x10), 0,
	      false); /* reallocarray: mov %rsi,%rax; mul %rdx, which has an argument */
	check(FIND(2, 0x48, 0xf7, 0xf6, 0x70, 0x10), 0, false); /* div %rsi: may not end well */
}

static void entries_of_other_allocators_are_known(void **state)
{
	(void)state;
	/* As objdump -d shows them in Debian 12's libjemalloc.so.2 and libtcmalloc_minimal.so.4. */
	check(FIND(1, 0x48, 0x81, 0xff, 0x00, 0x10, 0x00, 0x00, 0x0f, 0x87, 1, 2, 3, 0), 7,
	      true); /* malloc: cmp $0x1000,%rdi; ja */
	check(FIND(1, 0x48, 0x8b, 0x05, 0x59, 0xab, 0, 0, 0x48, 0x85, 0xc0, 0x75, 0x75), 10,
	      true); /* malloc: mov ..(%rip),%rax; test %rax,%rax; jne */
	check(FIND(3, 0x48, 0x8d, 0x46, 0xff, 0x48, 0x83, 0xc8, 0x07, 0x48, 0x85, 0xf0, 0x75, 0x2b),
	      11, true); /* posix_memalign: lea -1(%rsi),%rax; or $7,%rax; test %rsi,%rax; jne */
	check(FIND(2, 0x49, 0x89, 0xf8, 0x48, 0x81, 0xff, 0x00, 0x20, 0, 0, 0x0f, 0x87, 1, 2, 3, 0),
	      10, true); /* aligned_alloc: mov %rdi,%r8; cmp $0x2000,%rdi; ja */
}

/* Registers by their numbers in an instruction. */
enum { RAX, RCX, RDX, RBX, RSI = 6, RDI, R8 };

/* The arguments of @site, an emulated one at @offset, are in these registers. */
static void check_moved(struct probe_site site, size_t offset, uint8_t first, uint8_t second)
{
	check(site, offset, true);
	assert_int_equal(site.args[0], first);
	assert_int_equal(site.args[1], second);
}

static void moved_arguments_are_followed(void **state)
{
	(void)state;
	/* As objdump -d shows them in libmimalloc.so.2.0 of Debian 12, .so.3.0 of Debian 13. */
	check_moved(FIND_ANYWHERE(1, 0x48, 0x8b, 0x05, 0x49, 0xb4, 0, 0, 0x48, 0x89, 0xfe, 0x64,
				  0x48, 0x8b, 0x38, 0x48, 0x81, 0xfe, 0, 4, 0, 0, 0x77, 0x29),
		    21, RSI, RSI); /* malloc: mov ..,%rax; mov %rdi,%rsi; mov %fs:(%rax),%rdi;
				      cmp $1024,%rsi; ja */
	check_moved(FIND_ANYWHERE(2, 0x48, 0x8b, 0x15, 0xc9, 0xad, 0, 0, 0x48, 0x89, 0xf8, 0x64,
				  0x48, 0x8b, 0x3a, 0x48, 0x83, 0xf8, 0x01, 0x74, 0x08),
		    18, RAX, RSI); /* calloc: mov ..,%rdx; mov %rdi,%rax; mov %fs:(%rdx),%rdi;
				      cmp $1,%rax; je */
	check_moved(FIND_ANYWHERE(2, 0x48, 0x8b, 0x05, 0x49, 0xa9, 0, 0, 0x48, 0x89, 0xf2, 0x48,
				  0x89, 0xfe, 0x64, 0x48, 0x8b, 0x00, 0x48, 0x89, 0xc7, 0xe9, 0, 0,
				  0, 0),
		    20, RSI, RDX); /* realloc: mov ..,%rax; mov %rsi,%rdx; mov %rdi,%rsi;
				      mov %fs:(%rax),%rax; mov %rax,%rdi; jmp */
	/* The copy is not looked at where the argument is still in its place. */
	check_moved(FIND_ANYWHERE(2, 0x48, 0x89, 0xf8, 0x55), 3, RDI, RSI);
	/* Both forms of mov, and registers with a number of four bits. */
	check_moved(FIND_ANYWHERE(1, 0x4c, 0x8b, 0xc7, 0x31, 0xff, 0x55), 5, R8, RSI);
	check_moved(FIND_ANYWHERE(1, 0x49, 0x89, 0xf8, 0x31, 0xff, 0x4c, 0x89, 0xc1, 0x45, 0x31,
				  0xc0, 0x55),
		    11, RCX, RSI); /* from rdi to r8 to rcx */
}

static void an_argument_that_is_lost_ends_the_search(void **state)
{
	(void)state;
	/* mov %edi,%esi; xor %edi,%edi: half of it */
	check(FIND_ANYWHERE(1, 0x89, 0xfe, 0x31, 0xff, 0x55), 0, false);
	/* mov %rdi,%rsi; xor %esi,%esi; xor %edi,%edi: the copy is gone first */
	check(FIND_ANYWHERE(1, 0x48, 0x89, 0xfe, 0x31, 0xf6, 0x31, 0xff, 0x55), 0, false);
	/* mov %rdi,%rsi; xor %edi,%edi, of two arguments: the second is gone */
	check(FIND_ANYWHERE(2, 0x48, 0x89, 0xfe, 0x31, 0xff, 0x55), 0, false);
	/* mov %rdi,%rax; xor %edi,%edi; and $7,%eax; or: mul %rsi */
	check(FIND_ANYWHERE(1, 0x48, 0x89, 0xf8, 0x31, 0xff, 0x25, 7, 0, 0, 0, 0x55), 0, false);
	check(FIND_ANYWHERE(1, 0x48, 0x89, 0xf8, 0x31, 0xff, 0x48, 0xf7, 0xe6, 0x55), 0, false);
	/* the same with cmp $7,%eax, which changes nothing */
	check_moved(FIND_ANYWHERE(1, 0x48, 0x89, 0xf8, 0x31, 0xff, 0x3d, 7, 0, 0, 0, 0x55), 10, RAX,
		    RSI);
	/* mov (%rdi),%rsi; xor %edi,%edi: it is read, not copied */
	check(FIND_ANYWHERE(1, 0x48, 0x8b, 0x37, 0x31, 0xff, 0x55), 0, false);
	/* mov %rdi,%rbx: a register of the caller's, which is pushed before */
	check(FIND_ANYWHERE(1, 0x48, 0x89, 0xfb, 0x31, 0xff, 0x55), 0, false);
	/* mov %rdi,%rsi; xor %edi,%edi where arguments have to be in their places */
	check(FIND(1, 0x48, 0x89, 0xfe, 0x31, 0xff, 0x55), 0, false);
}

static void endbr64_is_stepped_over(void **state)
{
	(void)state;
	check(FIND(1, 0xf3, 0x0f, 0x1e, 0xfa, 0x55), 4, true);
	check(FIND(1, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x10), 7, true);
	check(FIND(1, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08), 0, false); /* sub $8,%rsp */
}

static void what_changes_an_argument_or_the_stack_is_not_stepped_over(void **state)
{
	(void)state;
	check(FIND(1, 0x48, 0x83, 0xec, 0x18, 0x55), 0, false);	      /* sub $24,%rsp; push */
	check(FIND(1, 0x31, 0xff, 0x55), 0, false);		      /* xor %edi,%edi */
	check(FIND(1, 0x48, 0x89, 0xfe, 0x55), 3, true);	      /* mov %rdi,%rsi */
	check(FIND(2, 0x48, 0x89, 0xfe, 0x55), 0, false);	      /* the same: an argument */
	check(FIND(1, 0x48, 0x8b, 0x3f, 0x55), 0, false);	      /* mov (%rdi),%rdi */
	check(FIND(3, 0x41, 0x89, 0xca, 0x55), 3, true);	      /* mov %ecx,%r10d */
	check(FIND(3, 0xba, 1, 0, 0, 0, 0x55), 0, false);	      /* mov $1,%edx */
	check(FIND(2, 0xba, 1, 0, 0, 0, 0x55), 5, true);	      /* the same, no argument */
	check(FIND(1, 0x48, 0x89, 0x07, 0x55), 0, false);	      /* mov %rax,(%rdi) */
	check(FIND(1, 0x48, 0x83, 0x07, 0x01, 0x55), 0, false);	      /* addq $1,(%rdi) */
	check(FIND(1, 0x48, 0xc1, 0xef, 0x03, 0x55), 0, false);	      /* shr $3,%rdi */
	check(FIND(1, 0x48, 0xc1, 0xe8, 0x03, 0x55), 4, true);	      /* shr $3,%rax */
	check(FIND(1, 0x4c, 0x89, 0xe4, 0x55), 0, false);	      /* mov %r12,%rsp */
	check(FIND(1, 0x48, 0x8b, 0x25, 1, 2, 3, 4, 0x55), 0, false); /* mov ..(%rip),%rsp */
	check(FIND(1, 0x0f, 0x10, 0x07, 0x55), 0, false);	      /* movups: not known */
}

static void the_length_of_operands_is_right(void **state)
{
	(void)state;
	/* lea in all its forms; the int3 behind it shows where the next instruction was thought */
	check(FIND(1, 0x48, 0x8d, 0x07, 0x55, 0xcc), 3, true);	     /* (%rdi) */
	check(FIND(1, 0x48, 0x8d, 0x47, 0x55, 0x55, 0xcc), 4, true); /* 85(%rdi) */
	check(FIND(1, 0x48, 0x8d, 0x87, 0x55, 0x55, 0x55, 0x55, 0x55, 0xcc), 7, true); /* disp32 */
	check(FIND(1, 0x48, 0x8d, 0x04, 0x37, 0x55, 0xcc), 4, true); /* (%rdi,%rsi) */
	check(FIND(1, 0x48, 0x8d, 0x44, 0x37, 0x55, 0x55, 0xcc), 5, true);
	check(FIND(1, 0x48, 0x8d, 0x04, 0x25, 0x55, 0x55, 0x55, 0x55, 0x55, 0xcc), 8, true);
	check(FIND(1, 0x48, 0x8d, 0x05, 0x55, 0x55, 0x55, 0x55, 0x55, 0xcc), 7, true);
	check(FIND(1, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x55, 0x55, 0x55, 0x55, 0x55), 9, true);
}

static bool is_hit(const uint8_t *text, size_t len, size_t site)
{
	const struct probe_span spans[] = {
		{site - 1, site - 1}, {site, site}, {site + 1, site + 1}, {site - 20, site + 3}};
	bool hit[4];

	probe_site_jumps(text, len, spans, 4, hit);
	assert_false(hit[0]);
	assert_false(hit[2]);
	assert_int_equal(hit[1], hit[3]);
	return hit[1];
}

static void a_site_that_is_jumped_to_is_found_out(void **state)
{
	const size_t site = 100;
	uint8_t text[70000];

	(void)state;
	memset(text, 0xcc, sizeof(text));
	assert_false(is_hit(text, sizeof(text), site));
	/* jmp rel8 from near, jmp rel32 from far behind, je rel32 from before */
	text[140] = 0xeb;
	text[141] = (uint8_t)(site - 142);
	assert_true(is_hit(text, sizeof(text), site));
	text[140] = 0xcc;
	assert_false(is_hit(text, sizeof(text), site));
	text[60000] = 0xe9;
	for (int i = 0; i < 4; i++)
		text[60001 + i] = (uint8_t)((uint32_t)(site - 60005) >> 8 * i);
	assert_true(is_hit(text, sizeof(text), site));
	/* with a prefix before it */
	text[59999] = 0xf2;
	assert_true(is_hit(text, sizeof(text), site));
	text[59999] = text[60000] = 0xcc;
	text[10] = 0x0f;
	text[11] = 0x84;
	for (int i = 0; i < 4; i++)
		text[12 + i] = (uint8_t)((uint32_t)(site - 16) >> 8 * i);
	assert_true(is_hit(text, sizeof(text), site));
}

/* What looks as a jump within another instruction is none.  Debian's malloc of glibc 2.43 has such
 * bytes before it: lea 0x107683(%rip),%rsi; lea 0x10781d(%rip),%rdi; call.
 */
static void bytes_within_an_instruction_are_no_jump(void **state)
{
	static const uint8_t code[] =
		{
			0x48, 0x8d, 0x35, 0x83, 0x76, 0x10, 0x00, 0x48, 0x8d,
			0x3d, 0x1d, 0x78, 0x10, 0x00, 0xe8, 0xa0, 0x3e, 0xf9,
			0xff, 0x48, 0x85, 0xff, 0x78, 0x71, /* the site: it is where the bytes 0x76
							       0x10 would lead */
		};
	const size_t at = 300, site = at + 22;
	uint8_t text[1000];

	(void)state;
	memset(text, 0x90, sizeof(text));
	memcpy(text + at, code, sizeof(code));
	assert_int_equal(at + 4 + 2 + 0x10, site);
	assert_false(is_hit(text, sizeof(text), site));
	text[at + 3] = 0xcc; /* now the lea is another one, which ends where it did */
	assert_false(is_hit(text, sizeof(text), site));
	text[at] = text[at + 1] = text[at + 2] = text[at + 3] = 0x90; /* and now there is none */
	assert_true(is_hit(text, sizeof(text), site));
}

/* @code in memory of just its size, so that reading behind it is found out. */
static struct probe_site find_exact(const uint8_t *code, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct probe_site site;

	assert_non_null(copy);
	if (len)
		memcpy(copy, code, len);
	site = probe_site_find(copy, len, 1, false);
	free(copy);
	return site;
}

/* Else a file made for it could keep the search busy, once for each name. */
static void the_search_ends_somewhere(void **state)
{
	static uint8_t near[129], far[4097];

	(void)state;
	for (size_t i = 0; i < sizeof(near); i++)
		near[i] = i % 2 ? 0xc0 : 0x31;
	for (size_t i = 0; i < sizeof(far); i++)
		far[i] = i % 2 ? 0xc0 : 0x31;
	near[sizeof(near) - 1] = far[sizeof(far) - 1] = 0x90;
	check(probe_site_find(near, sizeof(near), 1, false), sizeof(near) - 1, true);
	check(probe_site_find(far, sizeof(far), 1, false), 0, false);
}

static void functions_that_end_early_are_safe(void **state)
{
	static const uint8_t code[] = {0x64, 0x48, 0x8b, 0x04, 0x25, 1, 2,    3,    4,	  0x80,
				       0x3d, 1,	   2,	 3,    4,    5, 0x48, 0x81, 0xff, 1,
				       2,    3,	   4,	 0xb8, 1,    2, 3,    4,    0xcc};

	(void)state;
	for (size_t len = 0; len <= sizeof(code); len++)
		check(find_exact(code, len), 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glibc_2_36_entries_are_known),
		cmocka_unit_test(glibc_2_43_entries_are_known),
		cmocka_unit_test(entries_of_other_allocators_are_known),
		cmocka_unit_test(moved_arguments_are_followed),
		cmocka_unit_test(an_argument_that_is_lost_ends_the_search),
		cmocka_unit_test(endbr64_is_stepped_over),
		cmocka_unit_test(what_changes_an_argument_or_the_stack_is_not_stepped_over),
		cmocka_unit_test(the_length_of_operands_is_right),
		cmocka_unit_test(a_site_that_is_jumped_to_is_found_out),
		cmocka_unit_test(bytes_within_an_instruction_are_no_jump),
		cmocka_unit_test(the_search_ends_somewhere),
		cmocka_unit_test(functions_that_end_early_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
