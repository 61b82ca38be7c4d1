/* test_report_tree_shapes.c - lines of a tree below which all stacks grow, or none does */
#include "report/base/sizes.h"
#include "tests/unit/report_tree_world.h"

/* Add a stack and say of what kind it is. */
static void add_kind(struct fixture *f, const char *letters, uint32_t kind)
{
	uint32_t path[MAX_DEPTH];
	struct tree_stack stack = {.path = path, .bytes = 5, .blocks = 1, .kind = kind};

	for (const char *at = letters; *at; at++) {
		char name[2] = {*at, '\0'};

		assert_int_equal(
			labels_intern(f->labels, LABELS_NO_MODULE, name, "", &path[stack.nr++]), 0);
	}
	assert_int_equal(tree_add_stack(f->tree, &stack), 0);
}

static void a_line_has_the_shape_that_all_stacks_below_it_have(void **state)
{
	struct fixture f = start();

	(void)state;
	add_kind(&f, "aba", SHAPE_GROWING + 1);
	add_kind(&f, "abc", SHAPE_GROWING + 1);
	add_kind(&f, "adc", SHAPE_REPLACING + 1);
	add_kind(&f, "aec", 0);
	add_kind(&f, "aed", SHAPE_FILLING + 1);
	check_print(&f, HEADING "          25           5  a\n"
				"          10           2  |- b  [growing]\n"
				"           5           1  |  |- a\n"
				"           5           1  |  `- c\n"
				"          10           2  |- e\n"
				"           5           1  |  |- c\n"
				"           5           1  |  `- d  [filling]\n"
				"           5           1  `- d  [replacing]\n"
				"           5           1     c\n");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_the_shape_that_all_stacks_below_it_have),
	};

	sizes_set_exact(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
