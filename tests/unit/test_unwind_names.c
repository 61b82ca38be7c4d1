/* test_unwind_names.c - functions without a type, inlined ones, and names that are a burden */
#include <elf.h>

#include "tests/unit/unwind_live.h"
#include "unwind/symbol/demangle.h"

static struct dwunw_symbol resolve(const void *place)
{
	struct dwunw_frame frame = live_frame(live, (uint64_t)(uintptr_t)place, 0);
	struct dwunw_symbol symbol;

	assert_int_equal(dwunw_symbol_resolve_batch(live->dw, &frame, 1, &symbol), 0);
	return symbol;
}

/* What stands before has a type but no size, like frame_dummy in every program. */
__asm__(".text\n"
	".type typed_sizeless, @function\n"
	"typed_sizeless:\n\tnop\n"
	".globl untyped\n"
	"untyped:\n\t.cfi_startproc\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n"
	"$mapping:\n\tnop\n"
	".globl at_mapping\n"
	".set at_mapping, $mapping\n"
	".type typed_sized, @function\n"
	".globl typed_sized\n"
	"typed_sized:\n"
	"untyped_alias:\n\tnop\n"
	"untyped_inside:\n\tnop\n\tret\n"
	".size typed_sized, . - typed_sized\n"
	".globl untyped_after\n"
	"untyped_after:\n\tnop\n\tret\n"
	".data\n"
	".globl untyped_data\n"
	"untyped_data:\n\t.quad 0\n"
	".text\n");

extern const char untyped[], typed_sized[], untyped_after[], untyped_data[];

static void a_function_without_type_has_its_own_name(void **state)
{
	const char *before = (const char *)((uintptr_t)untyped - 1);

	(void)state;
	assert_string_equal(resolve(before).function, "typed_sizeless");
	for (size_t offset = 0; offset < 3; offset++) {
		struct dwunw_symbol symbol = resolve(untyped + offset);

		assert_string_equal(symbol.function, "untyped");
		assert_int_equal(symbol.offset, offset);
	}
	assert_string_equal(resolve(untyped_after + 1).function, "untyped_after");
}

static void a_label_does_not_split_a_function(void **state)
{
	(void)state;
	for (size_t offset = 0; offset < 3; offset++) {
		struct dwunw_symbol symbol = resolve(typed_sized + offset);

		assert_string_equal(symbol.function, "typed_sized");
		assert_int_equal(symbol.offset, offset);
	}
}

/* An image of this program without the headers of its sections of code, as reduced ones are. */
static void a_reduced_image_has_the_same_names(void **state)
{
	const size_t len = live->file[0].len;
	uint8_t *bytes = malloc(len);
	struct dwunw_frame frame = live_frame(live, (uint64_t)(uintptr_t)(untyped + 1), 0);
	struct dwunw_symbol symbol;
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)bytes;
	struct dwunw *dw;

	(void)state;
	assert_int_equal(frame.module, 0);
	memcpy(bytes, live->file[0].image, len);
	for (int i = 0; i < ehdr->e_shnum; i++)
		((Elf64_Shdr *)(bytes + ehdr->e_shoff))[i].sh_flags &= ~(uint64_t)SHF_EXECINSTR;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(dwunw_module_add(dw, &frame.module, "/x", bytes, len), 0);
	assert_int_equal(dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol), 0);
	assert_string_equal(symbol.function, "untyped");
	frame.addr += (uint64_t)(untyped_data - untyped);
	assert_int_equal(dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol), 0);
	assert_null(symbol.function);
	dwunw_free(dw);
	free(bytes);
}

static uint64_t place;

/* Lines of a header, as far as the compiler knows. */
#line 1000 "some_header.h"
static inline __attribute__((always_inline)) void innermost(void)
{
	__asm__ volatile("leaq 0(%%rip), %0\n\tnop" : "=r"(place));
}

static inline __attribute__((always_inline)) void between(void)
{
	innermost();
	__asm__ volatile("nop");
}
#line 107 "test_unwind_names.c"

__attribute__((noinline, noclone)) static uint32_t calls_inlined(void)
{
	uint32_t line;

	{
		volatile int in_a_block = 1;

		line = __LINE__ + 1;
		between();
		line += (uint32_t)in_a_block - 1;
	}
	return line;
}

static void the_line_of_inlined_code_is_that_of_the_call(void **state)
{
	uint32_t line = calls_inlined();
	struct dwunw_symbol symbol = resolve((const char *)(uintptr_t)place);

	(void)state;
	assert_string_equal(symbol.function, "calls_inlined");
	assert_non_null(symbol.file);
	assert_non_null(strstr(symbol.file, "test_unwind_names.c"));
	assert_int_equal(symbol.line, line);
}

static void inlined_functions_are_given_innermost_first(void **state)
{
	struct dwunw_symbol symbol;

	(void)state;
	calls_inlined();
	symbol = resolve((const char *)(uintptr_t)place);
	assert_int_equal(symbol.nr_inlined, 2);
	assert_string_equal(symbol.inlined[0].function, "innermost");
	assert_string_equal(symbol.inlined[1].function, "between");
	assert_int_equal(symbol.inlined[0].line, 1002);
	assert_int_equal(symbol.inlined[1].line, 1007);
	for (size_t i = 0; i < 2; i++)
		assert_non_null(strstr(symbol.inlined[i].file, "some_header.h"));
	symbol = resolve((const char *)(uintptr_t)calls_inlined);
	assert_string_equal(symbol.function, "calls_inlined");
	assert_int_equal(symbol.nr_inlined, 0);
	assert_null(symbol.inlined);
}

static void assert_demangled(const char *raw, const char *expect)
{
	char *name = dwunw_demangle(raw, strlen(raw));

	assert_string_equal(name, expect);
	free(name);
}

static void each_language_is_known_by_its_names(void **state)
{
	(void)state;
	assert_demangled("main", "main");
	assert_demangled("", "");
	assert_demangled("_start", "_start");
	assert_demangled("_ZN5shape4areaEid", "shape::area(int, double)");
	assert_demangled("_ZN3std2io5stdio6_print17h0123456789abcdefE", "std::io::stdio::_print");
	assert_demangled("_ZN3std2io5stdio6_print17h0000000000000000E",
			 "std::io::stdio::_print::h0000000000000000");
	assert_demangled("_RNvC6_123foo3bar", "123foo::bar");
	assert_demangled("_RNvC1au9bcher_kva", "a::b\xc3\xbc"
					       "cher");
	assert_demangled("_Znonsense", "_Znonsense");
	assert_demangled("_Rnonsense", "_Rnonsense");
}

static size_t put_number(char *to, size_t number)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	assert_true(number < 62 * 62);
	return (size_t)sprintf(to, "%c%c", digits[number / 62], digits[number % 62]);
}

/* Pairs of pairs of ... @leaf, @depth deep, each by two references to the one before it: for Rust.
 */
static void make_rust(char *raw, const char *leaf, int depth)
{
	size_t at = (size_t)sprintf(raw, "_RINvC1a1f"), before = at - 2;

	at += (size_t)sprintf(raw + at, "T%s%sE", leaf, leaf);
	for (int i = 0; i < depth; i++) {
		size_t start = at - 2;

		raw[at++] = 'T';
		for (int twice = 0; twice < 2; twice++) {
			raw[at++] = 'B';
			at += put_number(raw + at, before - 1);
			raw[at++] = '_';
		}
		raw[at++] = 'E';
		before = start;
	}
	sprintf(raw + at, "E");
}

/* The same for C++. */
static void make_cxx(char *raw, int depth)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t at = (size_t)sprintf(raw, "_Z1f1AIiiE");

	for (int i = 0; i < depth; i++)
		at += (size_t)sprintf(raw + at, "S_IS%c_S%c_E", digits[i], digits[i]);
}

static void a_name_that_stands_for_gigabytes_stays_as_it_is(void **state)
{
	char raw[1024];

	(void)state;
	make_rust(raw, "u", 1);
	assert_demangled(raw, "a::f::<((), ()), (((), ()), ((), ()))>");
	make_cxx(raw, 1);
	assert_demangled(raw, "f(A<int, int>, A<A<int, int>, A<int, int> >)");
	make_rust(raw, "u", 30);
	assert_demangled(raw, raw);
	/* libiberty holds an identifier in punycode on the heap: LeakSanitizer looks on. */
	make_rust(raw, "NtC1au9bcher_kva", 30);
	assert_demangled(raw, raw);
	make_cxx(raw, 30);
	assert_demangled(raw, raw);
	/* Lifetimes that are counted, not printed. */
	assert_demangled("_RNvMINtC1a1bFGzzzzzz_EuEi1f", "_RNvMINtC1a1bFGzzzzzz_EuEi1f");
}

static void a_name_is_cut_at_4096_bytes(void **state)
{
	static char raw[3 * DWUNW_MAX_NAME];
	char *name;

	(void)state;
	memset(raw, 'a', sizeof(raw) - 1);
	name = dwunw_demangle(raw, strlen(raw));
	assert_int_equal(strlen(name), DWUNW_MAX_NAME);
	free(name);
	memcpy(raw, "_Z8000", 6);
	name = dwunw_demangle(raw, strlen(raw));
	assert_int_equal(strlen(name), DWUNW_MAX_NAME);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_without_type_has_its_own_name),
		cmocka_unit_test(a_label_does_not_split_a_function),
		cmocka_unit_test(a_reduced_image_has_the_same_names),
		cmocka_unit_test(the_line_of_inlined_code_is_that_of_the_call),
		cmocka_unit_test(inlined_functions_are_given_innermost_first),
		cmocka_unit_test(each_language_is_known_by_its_names),
		cmocka_unit_test(a_name_that_stands_for_gigabytes_stays_as_it_is),
		cmocka_unit_test(a_name_is_cut_at_4096_bytes),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
