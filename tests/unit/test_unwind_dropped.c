/* test_unwind_dropped.c - lines of a program from which the linker dropped functions
 *
 * Their rows stay in the line table, from address 0 on, mixed with those of the code that is there.
 */
#include "tests/unit/unwind_live.h"

static char scratch[] = "/tmp/test_unwind_dropped.XXXXXX";

#include "tests/unit/scratch.h"

#define NR_LINES \
	1000 /* of each dropped function: its rows reach past the addresses of the others */

/* The program: a function that is kept, after one that is dropped and before another. */
static void write_program(FILE *to)
{
	fprintf(to, "void *malloc(unsigned long); volatile int x;\n#line 1\nvoid before(void) {\n");
	for (int i = 0; i < NR_LINES; i++)
		fprintf(to, "x = %d;\n", i);
	fprintf(to, "}\n#line 2001\n__attribute__((noinline)) int kept(int a) {\nx = a;\n"
		    "x = !malloc((unsigned long)x);\nreturn x + 1;\n}\n");
	fprintf(to, "#line 3001\nvoid after(void) {\n");
	for (int i = 0; i < NR_LINES; i++)
		fprintf(to, "x = %d;\n", i);
	fprintf(to, "}\nint main(int argc, char **argv) { return kept(argc) + !argv; }\n");
}

/* Build the program into @path; false when there is no compiler. */
static bool build(const char *path)
{
	char command[1024];
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "gcc -w -g -O1 -ffunction-sections -Wl,--gc-sections -o %s -x c - 2>%s.log", path,
		 path);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	write_program(pipe);
	return pclose(pipe) == 0;
}

static void lines_of_dropped_functions_are_not_given(void **state)
{
	char path[256];
	struct live live = {.nr_files = 0};
	struct dwunw_mapping map = {0};
	size_t nr_kept = 0;
	uint32_t module;

	(void)state;
	snprintf(path, sizeof(path), "%s/program", scratch);
	if (!build(path))
		skip();
	snprintf(live.file[0].path, sizeof(live.file[0].path), "%s", path);
	live_load_file(&live, 0, &map);
	assert_true(live.file[0].mapped);
	assert_int_equal(dwunw_new(&live.dw), 0);
	assert_int_equal(
		dwunw_module_add(live.dw, &module, path, live.file[0].image, live.file[0].len), 0);
	for (uint64_t addr = 0x1000; addr < 0x2000; addr++) {
		struct dwunw_frame frame = {.addr = addr, .module = module};
		struct dwunw_symbol symbol;

		assert_int_equal(dwunw_symbol_resolve_batch(live.dw, &frame, 1, &symbol), 0);
		if (!symbol.function || strcmp(symbol.function, "kept"))
			continue;
		nr_kept++;
		assert_in_range(symbol.line, 2001, 2005);
	}
	assert_true(nr_kept > 16);
	dwunw_free(live.dw);
	munmap(live.file[0].image, live.file[0].len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_dropped_functions_are_not_given),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
