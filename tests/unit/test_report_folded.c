/* test_report_folded.c - folded stacks keep to the grammar that all readers share */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <regex.h>

#include <cmocka.h>

#include "report/base/sizes.h"
#include "report/machine/print_folded.h"
#include "report/text/print_tree.h"

static void check_frame(const char *name, const char *expected)
{
	char *frame = folded_frame(name);

	assert_non_null(frame);
	assert_string_equal(frame, expected);
	free(frame);
}

static void frames_keep_to_the_grammar(void **state)
{
	(void)state;
	check_frame("main", "main");
	check_frame("operator new(unsigned long)", "operator new(unsigned long)");
	check_frame("operator new 16", "operator new_16");
	check_frame("f 1.5", "f_1.5");
	check_frame("f 1.", "f_1.");
	check_frame("f .5", "f .5");
	check_frame("f 16x", "f 16x");
	check_frame("a  7", "a _7");
	check_frame("7", "7");
	check_frame("a;b;", "a:b:");
	check_frame("", "[]");
	check_frame("-", "[-]");
	check_frame("--", "[--]");
	check_frame("---", "---");
	check_frame("# comment", "_ comment");
	check_frame(" a ", "_a_");
	check_frame("  ", "__");
	check_frame("a\nb\t", "a\\x0Ab\\x09");
	check_frame("\xff", "\\xFF");
}

static void check_grammar(const char *frame)
{
	size_t len = strlen(frame);
	regex_t number;

	assert_true(len > 0);
	assert_null(strchr(frame, ';'));
	assert_true(frame[0] != ' ' && frame[0] != '#' && frame[len - 1] != ' ');
	assert_true(strcmp(frame, "-") && strcmp(frame, "--"));
	for (size_t i = 0; i < len; i++)
		assert_true((unsigned char)frame[i] >= 0x20 && frame[i] != 0x7f);
	/* the second column of flamegraph.pl's differential input */
	assert_int_equal(regcomp(&number, "[[:space:]][0-9]+(\\.[0-9]*)?$", REG_EXTENDED), 0);
	assert_int_equal(regexec(&number, frame, 0, NULL, 0), REG_NOMATCH);
	regfree(&number);
}

static void random_names_keep_to_the_grammar(void **state)
{
	static const char often[] = " ;-#.019ab\n\x80";
	unsigned int seed = 3;
	char name[8];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t len = (unsigned int)rand_r(&seed) % sizeof(name);
		char *frame;

		for (size_t at = 0; at < len; at++)
			name[at] = often[(unsigned int)rand_r(&seed) % (sizeof(often) - 1)];
		name[len] = '\0';
		frame = folded_frame(name);
		assert_non_null(frame);
		check_grammar(frame);
		free(frame);
	}
}

static struct dwunw *dw; /* keeps the stacks of all tests */

static int new_unwinder(void **state)
{
	(void)state;
	return dwunw_new(&dw);
}

static int free_unwinder(void **state)
{
	(void)state;
	dwunw_free(dw);
	return 0;
}

/* A stack of places without a module, innermost first; 0 ends them. */
static void add(struct stacks *stacks, const uint64_t *pcs, enum dwunw_status status,
		uint64_t bytes)
{
	struct dwunw_frame frames[8] = {0};
	struct stack *stack;
	uint32_t number, id;
	size_t nr = 0;

	for (; pcs[nr]; nr++)
		frames[nr] = (struct dwunw_frame){
			.pc = pcs[nr], .addr = pcs[nr], .module = DWUNW_NO_MODULE};
	assert_int_equal(dwunw_stack_intern(dw, frames, nr, status, &id), 0);
	assert_int_equal(stacks_add(stacks, id, 0, &number), 0);
	stack = &stacks->all[number];
	stack->bytes += bytes;
	stack->blocks++;
}

static struct stacks *sample(void)
{
	struct stacks *stacks;

	assert_int_equal(stacks_new(&stacks, dw), 0);
	add(stacks, (const uint64_t[]){3, 2, 1, 0}, DWUNW_STATUS_ENDED, 47);
	add(stacks, (const uint64_t[]){2, 1, 0}, DWUNW_STATUS_ENDED, 100);
	add(stacks, (const uint64_t[]){2, 1, 0}, DWUNW_STATUS_ENDED, 11);
	add(stacks, (const uint64_t[]){3, 2, 0}, DWUNW_STATUS_TRUNCATED, 5);
	add(stacks, (const uint64_t[]){3, 2, 0}, DWUNW_STATUS_NO_CFI, 6);
	add(stacks, (const uint64_t[]){9, 0}, DWUNW_STATUS_ENDED, 0);
	add(stacks, (const uint64_t[]){0}, DWUNW_STATUS_NO_CFI, 2);
	return stacks;
}

/* What is printed of @stacks (which are freed), to be freed. */
static char *print(struct stacks *stacks, bool folded, struct view_opts opts)
{
	const struct symbols_source source = {.dw = dw};
	struct view *view;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	opts.addresses = true;
	assert_int_equal(view_new(&view, stacks, &source, &opts), 0);
	assert_int_equal(folded ? print_folded(out, "comm 1", view)
				: print_view_as_tree(out, view, "callers first", NULL),
			 0);
	assert_int_equal(fclose(out), 0);
	view_free(view);
	stacks_free(stacks);
	return text;
}

static void lines_are_merged_and_sorted(void **state)
{
	char *text = print(sample(), true, (struct view_opts){0});

	(void)state;
	assert_string_equal(text, "comm_1;0x1;0x2 111\n"
				  "comm_1;0x1;0x2;0x3 47\n"
				  "comm_1;[incomplete] 2\n"
				  "comm_1;[incomplete];0x2;0x3 11\n");
	free(text);
}

static void inverted_lines_begin_at_the_innermost(void **state)
{
	char *text = print(sample(), true, (struct view_opts){.inverted = true});

	(void)state;
	assert_string_equal(text, "comm_1;0x2;0x1 111\n"
				  "comm_1;0x3;0x2;0x1 47\n"
				  "comm_1;0x3;0x2;[incomplete] 11\n"
				  "comm_1;[incomplete] 2\n");
	free(text);
}

static void top_keeps_the_heaviest(void **state)
{
	char *text = print(sample(), true, (struct view_opts){.top = 2});

	(void)state;
	assert_string_equal(text, "comm_1;0x1;0x2 111\n"
				  "comm_1;0x1;0x2;0x3 47\n");
	free(text);
}

static void counts_stay_below_what_doubles_hold(void **state)
{
	struct stacks *stacks;
	char *text;

	(void)state;
	assert_int_equal(stacks_new(&stacks, dw), 0);
	add(stacks, (const uint64_t[]){1, 0}, DWUNW_STATUS_TRUNCATED, UINT64_MAX);
	add(stacks, (const uint64_t[]){1, 0}, DWUNW_STATUS_NO_CFI, UINT64_MAX);
	text = print(stacks, true, (struct view_opts){0});
	assert_string_equal(text, "comm_1;[incomplete];0x1 9007199254740991\n");
	free(text);
}

static void a_tree_tells_incomplete_stacks_and_what_is_left_out(void **state)
{
	char *text = print(sample(), false, (struct view_opts){.top = 3, .details = true});
	char expected[512];

	(void)state;
	snprintf(expected, sizeof(expected),
		 "       bytes      blocks  call path (callers first)\n"
		 "         158           3  0x1\n"
		 "         158           3  0x2\n"
		 "          47           1  0x3\n"
		 "\n"
		 "           6           1  [stack incomplete: %s]\n"
		 "           6           1  0x2\n"
		 "           6           1  0x3\n"
		 "\n"
		 "left out: 3 lighter stacks with 3 blocks, 7 bytes\n",
		 dwunw_status_text(DWUNW_STATUS_NO_CFI));
	assert_string_equal(text, expected);
	free(text);
}

static void nothing_outstanding_is_said(void **state)
{
	struct stacks *stacks;
	char *text;

	(void)state;
	assert_int_equal(stacks_new(&stacks, dw), 0);
	text = print(stacks, false, (struct view_opts){0});
	assert_string_equal(text, "no outstanding blocks\n");
	free(text);
	assert_int_equal(stacks_new(&stacks, dw), 0);
	text = print(stacks, true, (struct view_opts){0});
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_keep_to_the_grammar),
		cmocka_unit_test(random_names_keep_to_the_grammar),
		cmocka_unit_test(lines_are_merged_and_sorted),
		cmocka_unit_test(inverted_lines_begin_at_the_innermost),
		cmocka_unit_test(top_keeps_the_heaviest),
		cmocka_unit_test(counts_stay_below_what_doubles_hold),
		cmocka_unit_test(a_tree_tells_incomplete_stacks_and_what_is_left_out),
		cmocka_unit_test(nothing_outstanding_is_said),
	};

	sizes_set_exact(true); /* figures are compared with exact ones */
	return cmocka_run_group_tests(tests, new_unwinder, free_unwinder);
}
