/* test_report_recursion.c - repeated calls are one, and unfolded again they are all that were there
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/view/recursion.h"

/* Write what @text, a letter for each call, is folded to, as "ab3c", to @folded. */
static void fold_letters(const char *text, char *folded)
{
	uint32_t keys[VIEW_MAX_PATH];
	size_t nr = strlen(text), times, period;

	for (size_t i = 0; i < nr; i++)
		keys[i] = (unsigned char)text[i];
	for (size_t at = 0; at < nr; at += period * times) {
		period = recursion_at(keys, nr, at, &times);
		folded += sprintf(folded, period > 1 ? "(%.*s)" : "%.*s", (int)period, text + at);
		if (times > 1)
			folded += sprintf(folded, "%zu", times);
	}
	*folded = '\0';
}

static void check_fold(const char *text, const char *expected)
{
	char folded[VIEW_MAX_PATH];

	fold_letters(text, folded);
	assert_string_equal(folded, expected);
}

static void what_repeats_is_there_once(void **state)
{
	(void)state;
	check_fold("", "");
	check_fold("abc", "abc");
	check_fold("abbc", "ab2c");
	check_fold("aaaaaaaaaaaa", "a12");
	check_fold("xababx", "xababx");
	check_fold("xabababx", "x(ab)3x");
	check_fold("xababababax", "x(ab)4ax");
	check_fold("abcabcabcd", "(abc)3d");
	check_fold("aabaabaab", "(aab)3");
	check_fold("abcdefghabcdefghabcdefgh", "(abcdefgh)3");
	/* more than so many in turn are no recursion that a reader would see */
	check_fold("abcdefghiabcdefghiabcdefghi", "abcdefghiabcdefghiabcdefghi");
}

/* The same sequence of calls, whatever it is. */
static void nothing_is_lost(void **state)
{
	uint64_t seed = 88172645463325252u;
	uint32_t keys[300];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t nr = 1 + (size_t)(i % 300), times, period, at = 0;

		for (size_t k = 0; k < nr; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			keys[k] = (uint32_t)(seed >> 20) % (1 + (uint32_t)i % 4);
		}
		for (; at < nr; at += period * times) {
			period = recursion_at(keys, nr, at, &times);
			assert_true(period >= 1 && times >= 1 && at + period * times <= nr);
			for (size_t k = at; k < at + period * times; k++)
				assert_int_equal(keys[k], keys[at + (k - at) % period]);
		}
		assert_int_equal(at, nr);
	}
}

static uint32_t add_label(struct labels *labels, const char *name, const char *location)
{
	uint32_t module, number;

	assert_int_equal(labels_module(labels, "/bin/program", &module), 0);
	assert_int_equal(labels_intern(labels, module, name, location, &number), 0);
	return number;
}

static void stacks_of_any_depth_are_one_path_with_their_sum(void **state)
{
	struct recursion recursion;
	struct recursion_path *folded = malloc(sizeof(*folded));
	struct labels *labels;
	struct tree *tree;
	uint32_t f[2], start, path[40];
	const struct tree_node *node;

	(void)state;
	assert_non_null(folded);
	assert_int_equal(labels_new(&labels), 0);
	start = add_label(labels, "main", "x.c:9");
	f[0] = add_label(labels, "f", "x.c:1");
	f[1] = add_label(labels, "f", "x.c:2");
	assert_int_equal(recursion_init(&recursion, labels), 0);
	assert_int_equal(tree_new(&tree), 0);
	assert_int_equal(tree_by_function(tree, labels), 0);
	for (size_t depth = 1; depth < 40; depth++) {
		path[0] = start;
		for (size_t i = 1; i <= depth; i++)
			path[i] = f[i * i % 2];
		assert_int_equal(recursion_fold(&recursion, path, depth, folded), 0);
		assert_int_equal(
			tree_add_stack(tree, &(struct tree_stack){.path = folded->labels,
								  .nr = folded->nr,
								  .bytes = 47,
								  .blocks = 1,
								  .repeats = folded->repeats}),
			0);
	}
	/* the root, main and f */
	assert_int_equal(tree->nr, 3);
	node = &tree->all[2];
	assert_int_equal(node->bytes, 38 * 47);
	assert_int_equal(node->least_times, 1);
	assert_int_equal(node->most_times, 38);
	/* a place counts once for each stack */
	for (size_t i = 0; i < tree->places.nr; i++)
		assert_true(tree->places.all[i].bytes <= 39 * 47);
	recursion_release(&recursion);
	tree_free(tree);
	labels_free(labels);
	free(folded);
}

static void functions_in_turn_are_one_line(void **state)
{
	struct recursion recursion;
	struct recursion_path *folded = malloc(sizeof(*folded));
	struct labels *labels;
	uint32_t path[7];

	(void)state;
	assert_non_null(folded);
	assert_int_equal(labels_new(&labels), 0);
	for (size_t i = 0; i < 6; i++)
		path[i] = add_label(labels, i % 2 ? "g" : "f", "");
	path[6] = add_label(labels, "leak", "");
	assert_int_equal(recursion_init(&recursion, labels), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recursion_fold(&recursion, path, 7, folded), 0);
		assert_int_equal(folded->nr, 2);
		assert_string_equal(labels->all[folded->labels[0]].name, "f > g");
		assert_int_equal(folded->repeats[0].times, 3);
		assert_int_equal(folded->labels[1], path[6]);
		assert_int_equal(labels->nr, 4);
	}
	recursion_release(&recursion);
	labels_free(labels);
	free(folded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_repeats_is_there_once),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(stacks_of_any_depth_are_one_path_with_their_sum),
		cmocka_unit_test(functions_in_turn_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
