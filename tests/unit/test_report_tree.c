/* test_report_tree.c - stacks become a tree, and the tree becomes lines */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/base/sizes.h"
#include "tests/unit/report_tree_world.h"

static void a_chain_is_not_indented(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "abx", 1081, 23);
	check_print(&f, HEADING "       1,081          23  a\n"
				"       1,081          23  b\n"
				"       1,081          23  x  file.c:3\n");
	finish(&f);
}

static void branches_are_drawn_and_the_heaviest_is_first(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "abcd", 500, 11);
	add(&f, "abef", 581, 12);
	add(&f, "abeg", 1, 1);
	add(&f, "abh", 2, 1);
	check_print(&f, HEADING "       1,084          25  a\n"
				"       1,084          25  b\n"
				"         582          13  |- e\n"
				"         581          12  |  |- f\n"
				"           1           1  |  `- g\n"
				"         500          11  |- c\n"
				"         500          11  |  d\n"
				"           2           1  `- h\n");
	finish(&f);
}

static void roots_are_apart(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "ab", 1, 1);
	add(&f, "cb", 2, 1);
	check_print(&f, HEADING "           2           1  c\n"
				"           2           1  b\n"
				"\n"
				"           1           1  a\n"
				"           1           1  b\n");
	finish(&f);
}

static void a_stack_that_ends_inside_another_counts_in_its_nodes(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "ab", 10, 1);
	add(&f, "abc", 5, 1);
	add(&f, "", 99, 9);
	check_print(&f, HEADING "          15           2  a\n"
				"          15           2  b\n"
				"           5           1  c\n");
	finish(&f);
}

static void recursion_makes_a_node_for_each_call(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "aaa", 3, 1);
	add(&f, "aa", 2, 1);
	check_print(&f, HEADING "           5           2  a\n"
				"           5           2  a\n"
				"           3           1  a\n");
	finish(&f);
}

static void equals_are_ordered_by_blocks_and_name(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "ad", 5, 1);
	add(&f, "ab", 5, 1);
	add(&f, "ac", 5, 2);
	check_print(&f, HEADING "          15           4  a\n"
				"           5           2  |- c\n"
				"           5           1  |- b\n"
				"           5           1  `- d\n");
	finish(&f);
}

static void the_order_of_addition_does_not_matter(void **state)
{
	static const char *const paths[] = {"abc", "abd", "ae", "f", "abcg", "xyz", "xz", "aeh"};
	unsigned int seed = 1;
	char *first = NULL;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct fixture f = start();
		int from = rand_r(&seed) % 8;
		char *text;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		for (int i = 0; i < 8; i++)
			add(&f, paths[(from + 3 * i) % 8], 7, 1);
		assert_int_equal(tree_sort(f.tree, f.labels), 0);
		print_tree(out, f.tree, f.labels, "callers first");
		assert_int_equal(fclose(out), 0);
		if (first)
			assert_string_equal(text, first);
		else
			first = strdup(text);
		free(text);
		finish(&f);
	}
	free(first);
}

static void many_nodes_keep_their_sums(void **state)
{
	struct fixture f = start();
	unsigned int seed = 7;
	uint64_t sum = 0, roots = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		char path[MAX_DEPTH + 1] = "";
		uint64_t bytes = (unsigned int)rand_r(&seed) % 100;

		for (int depth = 0; depth < 1 + rand_r(&seed) % MAX_DEPTH; depth++)
			path[depth] = (char)('a' + rand_r(&seed) % 6);
		path[0] = path[0] ? path[0] : 'a';
		add(&f, path, bytes, 1);
		sum += bytes;
	}
	assert_int_equal(tree_sort(f.tree, f.labels), 0);
	for (uint32_t at = f.tree->all[TREE_ROOT].first; at != TREE_NONE; at = f.tree->all[at].next)
		roots += f.tree->all[at].bytes;
	assert_int_equal(sum, roots);
	finish(&f);
}

static void suspects_stand_at_each_node_above_them(void **state)
{
	struct fixture f = start();
	uint32_t path[2];
	const struct tree_stack stack = {path, 2, .bytes = 25, .blocks = 1, .suspects = 1};

	(void)state;
	add(&f, "ab", 100, 4);
	add(&f, "ac", 25, 1);
	assert_int_equal(labels_intern(f.labels, LABELS_NO_MODULE, "a", "", &path[0]), 0);
	assert_int_equal(labels_intern(f.labels, LABELS_NO_MODULE, "c", "", &path[1]), 0);
	assert_int_equal(tree_add_stack(f.tree, &stack), 0);
	check_print(&f, HEADING "         150           6  a  [suspect: 1 of 6]\n"
				"         100           4  |- b\n"
				"          50           2  `- c  [suspect: 1 of 2]\n");
	finish(&f);
}

/* Add a path of labels, each "NAME LOCATION" or "NAME"; NULL ends it. */
static void add_places(struct fixture *f, uint64_t bytes, const char *const *labels)
{
	uint32_t path[MAX_DEPTH];
	size_t nr = 0;

	for (; labels[nr]; nr++) {
		char name[16] = "", location[32] = "";

		sscanf(labels[nr], "%15s %31s", name, location);
		assert_int_equal(
			labels_intern(f->labels, LABELS_NO_MODULE, name, location, &path[nr]), 0);
	}
	if (bytes)
		assert_int_equal(tree_add(f->tree, path, nr, bytes, 1), 0);
}

#define ADD_PLACES(f, bytes, ...) add_places(f, bytes, (const char *const[]){__VA_ARGS__, NULL})

static void add_calls(struct fixture *f, uint64_t sign)
{
	ADD_PLACES(f, sign * 10, "main a.c:1", "f a.c:2", "g b.c:9");
	ADD_PLACES(f, sign * 20, "main a.c:1", "f a.c:3", "g");
	ADD_PLACES(f, sign * 5, "main a.c:1", "f x.c:3", "h");
	ADD_PLACES(f, sign * 1, "main a.c:1", "f a.c:4", "h");
	ADD_PLACES(f, sign * 2, "main a.c:1", "f a.c:5", "h");
}

static void by_function_the_lines_of_a_function_are_in_one_node_the_heaviest_first(void **state)
{
	struct fixture f = start();

	(void)state;
	add_calls(&f, 0); /* all labels are to be there */
	assert_int_equal(tree_by_function(f.tree, f.labels), 0);
	add_calls(&f, 1);
	check_print(&f,
		    HEADING "          38           5  main  a.c:1\n"
			    "          38           5  f  a.c:3 (20), :2 (10), x.c:3 (5), 2 more\n"
			    "          30           2  |- g  [no line] (20), b.c:9 (10)\n"
			    "           8           3  `- h\n");
	finish(&f);
}

static void lines_do_not_change_a_tree_by_function(void **state)
{
	static const char *const plain[] = {"main", "f", "g", NULL}, *const at[] = {"h", NULL};
	struct fixture f = start();

	(void)state;
	add_places(&f, 0, plain);
	add_places(&f, 0, at);
	assert_int_equal(tree_by_function(f.tree, f.labels), 0);
	ADD_PLACES(&f, 10, "main", "f", "g");
	ADD_PLACES(&f, 20, "main", "f", "g");
	ADD_PLACES(&f, 8, "main", "f", "h");
	check_print(&f, HEADING "          38           3  main\n"
				"          38           3  f\n"
				"          30           2  |- g\n"
				"           8           1  `- h\n");
	finish(&f);
}

/* Add a path of two functions: @parent, which has no module, and @name of the module @path, at a
 * line of its own for odd and for even @bytes.  Without a tree, only their labels. */
static void add_in_module(struct fixture *f, const char *parent, const char *name, const char *path,
			  uint64_t bytes)
{
	uint32_t labels[2], module;

	assert_int_equal(labels_module(f->labels, path, &module), 0);
	assert_int_equal(labels_intern(f->labels, LABELS_NO_MODULE, parent, "", &labels[0]), 0);
	assert_int_equal(
		labels_intern(f->labels, module, name, bytes % 2 ? "x.c:1" : "x.c:2", &labels[1]),
		0);
	if (f->tree)
		assert_int_equal(tree_add(f->tree, labels, 2, bytes, 1), 0);
}

/* Add all of @calls, NAME of MODULE with so many bytes below PARENT, and check what is printed. */
static void check_modules(const char *const (*calls)[3], const uint64_t *bytes, size_t nr,
			  const char *expected)
{
	struct fixture f = start();
	struct tree *tree = f.tree;

	/* all labels are to be there before tree_by_function() */
	f.tree = NULL;
	for (size_t i = 0; i < nr; i++)
		add_in_module(&f, calls[i][0], calls[i][1], calls[i][2], bytes[i]);
	f.tree = tree;
	assert_int_equal(tree_by_function(f.tree, f.labels), 0);
	for (size_t i = 0; i < nr; i++)
		add_in_module(&f, calls[i][0], calls[i][1], calls[i][2], bytes[i]);
	assert_int_equal(tree_tell_apart(f.tree, f.labels), 0);
	check_print(&f, expected);
	finish(&f);
}

#define CHECK_MODULES(bytes, expected, ...)                                            \
	do {                                                                           \
		static const char *const calls[][3] = {__VA_ARGS__};                   \
		check_modules(calls, bytes, sizeof(calls) / sizeof(*calls), expected); \
	} while (0)

static void functions_of_one_name_are_told_apart_by_the_files_of_their_modules(void **state)
{
	static const uint64_t bytes[] = {1081, 1537, 329, 2};

	(void)state;
	CHECK_MODULES(bytes,
		      HEADING "       2,949           4  f\n"
			      "       1,537           1  |- init [libb.so]  x.c:1\n"
			      "       1,410           2  |- init [liba.so]  x.c:1\n"
			      "           2           1  `- exit  x.c:2\n",
		      {"f", "init", "/lib/liba.so"}, {"f", "init", "/lib/libb.so"},
		      {"f", "init", "/lib/liba.so"}, {"f", "exit", "/lib/libb.so"});
}

static void modules_of_one_file_name_are_told_by_their_paths(void **state)
{
	static const uint64_t bytes[] = {9, 7, 5};

	(void)state;
	CHECK_MODULES(bytes,
		      HEADING "          21           3  f\n"
			      "           9           1  |- init [/one/p.so]  x.c:1\n"
			      "           7           1  |- init [/two/p.so]  x.c:1\n"
			      "           5           1  `- init [q.so]  x.c:1\n",
		      {"f", "init", "/one/p.so"}, {"f", "init", "/two/p.so"},
		      {"f", "init", "/one/q.so"});
}

static void modules_of_functions_that_are_not_beside_each_other_are_not_told(void **state)
{
	static const uint64_t bytes[] = {9, 7};

	(void)state;
	CHECK_MODULES(bytes,
		      HEADING "           9           1  f\n"
			      "           9           1  init  x.c:1\n"
			      "\n"
			      "           7           1  g\n"
			      "           7           1  init  x.c:1\n",
		      {"f", "init", "/lib/liba.so"}, {"g", "init", "/lib/libb.so"});
}

static void a_module_that_was_deleted_meanwhile_is_the_same(void **state)
{
	static const uint64_t bytes[] = {9, 8};

	(void)state;
	CHECK_MODULES(bytes,
		      HEADING "          17           2  f\n"
			      "          17           2  init  x.c:1 (9), :2 (8)\n",
		      {"f", "init", "/lib/liba.so"}, {"f", "init", "/lib/liba.so (deleted)"});
}

static void what_is_not_of_code_is_not_told_of(void **state)
{
	static const uint64_t bytes[] = {9, 7};

	(void)state;
	CHECK_MODULES(bytes,
		      HEADING "          16           2  f\n"
			      "           9           1  |- [incomplete]  x.c:1\n"
			      "           7           1  `- [incomplete] [odd.so]  x.c:1\n",
		      {"f", "[incomplete]", ""}, {"f", "[incomplete]", "/lib/odd.so"});
}

static void columns_are_as_wide_as_the_largest_numbers(void **state)
{
	struct fixture f = start();

	(void)state;
	add(&f, "ab", 1234567890123, 10000000000);
	add(&f, "ac", 5, 1);
	check_print(&f, "             bytes         blocks  call path (callers first)\n"
			" 1,234,567,890,128 10,000,000,001  a\n"
			" 1,234,567,890,123 10,000,000,000  |- b\n"
			"                 5              1  `- c\n");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_is_not_indented),
		cmocka_unit_test(branches_are_drawn_and_the_heaviest_is_first),
		cmocka_unit_test(roots_are_apart),
		cmocka_unit_test(a_stack_that_ends_inside_another_counts_in_its_nodes),
		cmocka_unit_test(recursion_makes_a_node_for_each_call),
		cmocka_unit_test(equals_are_ordered_by_blocks_and_name),
		cmocka_unit_test(the_order_of_addition_does_not_matter),
		cmocka_unit_test(many_nodes_keep_their_sums),
		cmocka_unit_test(suspects_stand_at_each_node_above_them),
		cmocka_unit_test(
			by_function_the_lines_of_a_function_are_in_one_node_the_heaviest_first),
		cmocka_unit_test(columns_are_as_wide_as_the_largest_numbers),
		cmocka_unit_test(lines_do_not_change_a_tree_by_function),
		cmocka_unit_test(
			functions_of_one_name_are_told_apart_by_the_files_of_their_modules),
		cmocka_unit_test(modules_of_one_file_name_are_told_by_their_paths),
		cmocka_unit_test(modules_of_functions_that_are_not_beside_each_other_are_not_told),
		cmocka_unit_test(a_module_that_was_deleted_meanwhile_is_the_same),
		cmocka_unit_test(what_is_not_of_code_is_not_told_of),
	};

	sizes_set_exact(true); /* figures are compared with exact ones */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
