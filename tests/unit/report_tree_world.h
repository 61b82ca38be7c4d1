/* report_tree_world.h - for the tests of trees: paths of one-letter functions, and the lines they
 * are */
#ifndef TESTS_REPORT_TREE_WORLD_H
#define TESTS_REPORT_TREE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/text/print_tree.h"

#define MAX_DEPTH 16

/* A tree, and the names in it. */
struct fixture {
	struct tree *tree;
	struct labels *labels;
};

static inline struct fixture start(void)
{
	struct fixture f;

	assert_int_equal(tree_new(&f.tree), 0);
	assert_int_equal(labels_new(&f.labels), 0);
	return f;
}

static inline void finish(struct fixture *f)
{
	tree_free(f->tree);
	labels_free(f->labels);
}

/* Add a path of one-letter functions, with 'x' to 'z' having a location. */
static inline void add(struct fixture *f, const char *letters, uint64_t bytes, uint64_t blocks)
{
	uint32_t path[MAX_DEPTH];
	size_t nr = 0;

	for (; *letters; letters++, nr++) {
		char name[2] = {*letters, '\0'};

		assert_int_equal(labels_intern(f->labels, LABELS_NO_MODULE, name,
					       *letters >= 'x' ? "file.c:3" : "", &path[nr]),
				 0);
	}
	assert_int_equal(tree_add(f->tree, path, nr, bytes, blocks), 0);
}

static inline void check_print(struct fixture *f, const char *expected)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(tree_sort(f->tree, f->labels), 0);
	print_tree(out, f->tree, f->labels, "callers first");
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

#define HEADING "       bytes      blocks  call path (callers first)\n"

#endif
