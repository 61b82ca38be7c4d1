/* test_unwind_symbol.c - names of places in this process, against dladdr() and the compiler */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/unwind_live.h"

/* Not ASan's malloc, which would come first by the usual lookup. */
static void *libc_symbol(const char *name)
{
	static void *libc;
	void *found;

	if (!libc)
		libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(libc);
	found = dlsym(libc, name);
	assert_non_null(found);
	return found;
}

static struct dwunw_symbol resolve(uint64_t pc, uint32_t flags)
{
	struct dwunw_frame frame = live_frame(live, pc, flags);
	struct dwunw_symbol symbol;

	assert_int_equal(dwunw_symbol_resolve_batch(live->dw, &frame, 1, &symbol), 0);
	return symbol;
}

static void exported_functions_have_their_public_names(void **state)
{
	static const char *const names[] = {"malloc", "free",	"calloc",      "realloc",
					    "qsort",  "getenv", "strtoul",     "printf",
					    "fopen",  "raise",	"reallocarray"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t addr = (uint64_t)(uintptr_t)libc_symbol(names[i]);

		for (unsigned int offset = 0; offset < 4; offset++) {
			struct dwunw_symbol symbol = resolve(addr + offset, 0);

			assert_string_equal(symbol.function, names[i]);
			assert_int_equal(symbol.offset, offset);
		}
	}
}

/* A table of this program's own, in its data. */
const char *const some_table_of_names[] = {"one", "two"};

static void variables_have_names(void **state)
{
	char path[4096], *name;
	const uint64_t addr = (uint64_t)(uintptr_t)&some_table_of_names[1];
	uint64_t start, end, offset, found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[8192];
	struct dwunw_frame frame = live_frame(live, (uint64_t)(uintptr_t)variables_have_names, 0);

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095s", &start,
			   &end, &offset, path) == 4 &&
		    addr >= start && addr < end)
			found = addr - start + offset;
	fclose(maps);
	assert_int_not_equal(found, 0);
	assert_int_equal(dwunw_object_name(live->dw, frame.module, found, &name), 0);
	assert_non_null(name);
	assert_string_equal(name, "some_table_of_names");
	free(name);
	assert_int_equal(dwunw_object_name(live->dw, frame.module, UINT64_MAX, &name), 0);
	assert_null(name);
	assert_int_equal(dwunw_object_name(live->dw, DWUNW_NO_MODULE, found, &name), 0);
	assert_null(name);
}

static void places_in_libc_are_where_dladdr_finds_them(void **state)
{
	uint64_t base = (uint64_t)(uintptr_t)libc_symbol("malloc") - 0x8000, nr_equal = 0;

	(void)state;
	for (uint64_t pc = base; pc < base + 0x10000; pc += 37) {
		struct dwunw_symbol symbol = resolve(pc, 0);
		Dl_info info;

		/* Both may know a function that is not exported, or none. */
		if (!dladdr((void *)(uintptr_t)pc, &info) || !info.dli_saddr || !symbol.function)
			continue;
		if (libc_symbol("malloc") && dlsym(RTLD_DEFAULT, symbol.function) == NULL)
			continue;
		assert_int_equal(pc - symbol.offset, (uint64_t)(uintptr_t)info.dli_saddr);
		nr_equal++;
	}
	assert_true(nr_equal > 100);
}

/* Where it stands, and its line. */
#define HERE(pc)                                                  \
	({                                                        \
		__asm__ volatile("leaq 0(%%rip), %0" : "=r"(pc)); \
		(uint32_t) __LINE__;                              \
	})

__attribute__((noinline, noclone)) static void known_place(uint64_t *pc, uint32_t *line)
{
	*line = HERE(*pc);
}

static void a_line_is_the_compilers(void **state)
{
	struct dwunw_symbol symbol;
	uint64_t pc;
	uint32_t line;

	(void)state;
	known_place(&pc, &line);
	symbol = resolve(pc, DWUNW_FRAME_FLAG_RETURN);
	assert_string_equal(symbol.function, "known_place");
	assert_int_equal(symbol.offset, pc - (uint64_t)(uintptr_t)known_place);
	assert_non_null(symbol.file);
	assert_non_null(strstr(symbol.file, "test_unwind_symbol.c"));
	assert_int_equal(symbol.line, line);
}

static uint64_t call_site;

__attribute__((noinline, noclone)) static void note_call_site(void)
{
	call_site = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static void a_return_address_has_the_line_of_its_call(void **state)
{
	struct dwunw_symbol symbol;
	uint32_t line;

	(void)state;
	line = __LINE__ + 1;
	note_call_site();
	symbol = resolve(call_site, DWUNW_FRAME_FLAG_RETURN);
	assert_string_equal(symbol.function, "a_return_address_has_the_line_of_its_call");
	assert_int_equal(symbol.line, line);
}

/* The last instruction is the call: its return address is already in the next function. */
__asm__(".text\n"
	".type calls_last, @function\n"
	"calls_last:\n\t.cfi_startproc\n\tnop\n\tcall abort\n\t.cfi_endproc\n"
	".size calls_last, . - calls_last\n"
	".type comes_next, @function\n"
	"comes_next:\n\tud2\n"
	".size comes_next, . - comes_next\n"
	".globl nameless_size\n"
	".type nameless_size, @function\n"
	"nameless_size:\n\tnop\n\tnop\n\tnop\n\tnop\n"
	".type _hidden_alias, @function\n"
	"_hidden_alias:\n"
	".globl __global_alias\n"
	".type __global_alias, @function\n"
	"__global_alias:\n"
	".weak public_weak\n"
	".type public_weak, @function\n"
	"public_weak:\n"
	".type public_local, @function\n"
	"public_local:\n\tnop\n"
	".size public_local, . - public_local\n"
	".globl _ZN5shape4areaEid\n"
	".type _ZN5shape4areaEid, @function\n"
	"_ZN5shape4areaEid:\n\tnop\n"
	".size _ZN5shape4areaEid, . - _ZN5shape4areaEid\n");

extern char nameless_size[], public_weak[], _ZN5shape4areaEid[];

static void a_return_address_after_a_function_belongs_to_it(void **state)
{
	uint64_t next = (uint64_t)(uintptr_t)nameless_size - 2;
	struct dwunw_symbol symbol;

	(void)state;
	symbol = resolve(next, 0);
	assert_string_equal(symbol.function, "comes_next");
	symbol = resolve(next, DWUNW_FRAME_FLAG_RETURN);
	assert_string_equal(symbol.function, "calls_last");
	assert_int_equal(symbol.offset, 6);
}

static void a_symbol_without_size_reaches_to_the_next(void **state)
{
	(void)state;
	for (uint64_t offset = 0; offset < 4; offset++) {
		struct dwunw_symbol symbol =
			resolve((uint64_t)(uintptr_t)nameless_size + offset, 0);

		assert_string_equal(symbol.function, "nameless_size");
		assert_int_equal(symbol.offset, offset);
	}
}

static void of_aliases_the_public_one_is_given(void **state)
{
	(void)state;
	assert_string_equal(resolve((uint64_t)(uintptr_t)public_weak, 0).function, "public_weak");
}

static void names_are_demangled(void **state)
{
	(void)state;
	assert_string_equal(resolve((uint64_t)(uintptr_t)_ZN5shape4areaEid, 0).function,
			    "shape::area(int, double)");
}

static void strings_stay_the_same(void **state)
{
	uint64_t pc = (uint64_t)(uintptr_t)libc_symbol("qsort");
	struct dwunw_symbol first = resolve(pc, 0), again;

	(void)state;
	for (unsigned int i = 1; i < 2000; i++)
		resolve(pc + i, 0);
	again = resolve(pc, 0);
	assert_ptr_equal(first.function, again.function);
	assert_ptr_equal(first.file, again.file);
}

static void no_module_has_no_names(void **state)
{
	struct dwunw_frame frames[2] = {{.pc = 1, .addr = 1, .module = DWUNW_NO_MODULE},
					{.pc = 1, .addr = UINT64_MAX, .module = 0}};
	struct dwunw_symbol symbols[2];

	(void)state;
	memset(symbols, 0xff, sizeof(symbols));
	assert_int_equal(dwunw_symbol_resolve_batch(live->dw, frames, 2, symbols), 0);
	for (int i = 0; i < 2; i++) {
		assert_null(symbols[i].function);
		assert_null(symbols[i].file);
		assert_int_equal(symbols[i].line, 0);
		assert_int_equal(symbols[i].offset, 0);
	}
	assert_null(dwunw_module_path(live->dw, DWUNW_NO_MODULE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exported_functions_have_their_public_names),
		cmocka_unit_test(variables_have_names),
		cmocka_unit_test(places_in_libc_are_where_dladdr_finds_them),
		cmocka_unit_test(a_line_is_the_compilers),
		cmocka_unit_test(a_return_address_has_the_line_of_its_call),
		cmocka_unit_test(a_return_address_after_a_function_belongs_to_it),
		cmocka_unit_test(a_symbol_without_size_reaches_to_the_next),
		cmocka_unit_test(of_aliases_the_public_one_is_given),
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(strings_stay_the_same),
		cmocka_unit_test(no_module_has_no_names),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
