/* print_tree.c - see print_tree.h */
#include "report/text/print_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/table_rows.h"
#include "report/name/short_name.h"
#include "report/terminal/color.h"
#include "report/text/tree_location.h"
#include "report/view/view_tree.h"

#define LEAST_WIDTH 12 /* of the columns of numbers */
#define MAX_INDENT  5  /* bytes for each branch above a node */
#define GONE	    "  outstanding at exit; --per-process shows each"
#define TIMES_MAX   80	/* bytes of times_text() */
#define SHAPE_MAX   32	/* the same of shape_text() */
#define NUMBERS_MAX 160 /* and of numbers_text() */

/* What is drawn before a node with others beside it, and before what is below such a node. */
static const struct lines {
	const char *branch, *last_branch, *through, *gap;
} ascii_lines = {"|- ", "`- ", "|  ", "   "},
  utf8_lines = {"\u251c\u2500 ", "\u2514\u2500 ", "\u2502  ", "   "};

struct printer {
	FILE *out;
	const struct tree *tree;
	const struct labels *labels;
	const struct view *view; /* that the tree is of, or NULL */
	bool color;
	size_t columns; /* of the terminal; 0: it is none */
	uint64_t heavy; /* weight from which on a node is emphasized */
	const struct lines *lines;
	int bytes_width, blocks_width; /* of the columns */
	char **names;		       /* by label: its short name, NULL: not made yet; or NULL */
	struct live_amount shown;      /* whose columns are in numbers; as callers mostly have */
	char numbers[NUMBERS_MAX];
	size_t rows;	/* that may be printed; 0: all */
	uint64_t least; /* weight of the lightest that has room */
	size_t equals;	/* of those that are as light: so many have */
	size_t hidden;
	struct live_amount hidden_amount;
	size_t indent;				 /* bytes of prefix in use */
	char prefix[VIEW_MAX_PATH * MAX_INDENT]; /* what precedes the children of a node */
};

/* Is node @number the root of processes that are gone? */
static bool is_gone(const struct printer *p, uint32_t number)
{
	bool roots = p->view && p->view->roots && p->tree->all[number].parent == TREE_ROOT;
	size_t nr = roots ? live_nr_processes(p->view->opts.live) : 0;
	uint32_t label = p->tree->all[number].label;

	for (size_t i = 0; i < nr; i++)
		if (p->view->roots[i] == label)
			return p->view->gone[i];
	return false;
}

/* How often calls at @node are repeated, as "  x 3" or "  x 2-1,021", or nothing. */
static const char *times_text(char buf[TIMES_MAX], const struct tree_node *node)
{
	char least[TEXT_NUMBER_MAX], most[TEXT_NUMBER_MAX];

	buf[0] = '\0';
	if (node->most_times > 1)
		snprintf(buf, TIMES_MAX, "  x %s%s%s",
			 node->least_times < node->most_times
				 ? text_number(least, node->least_times)
				 : "",
			 node->least_times < node->most_times ? "-" : "",
			 text_number(most, node->most_times));
	return buf;
}

/* The shape of all stacks below node @number, as "  [growing]"; "" where there are several, or the
 * line above says it. */
static const char *shape_text(char buf[SHAPE_MAX], const struct printer *p, uint32_t number)
{
	const struct tree_node *node = &p->tree->all[number];
	uint32_t above = node->parent == TREE_ROOT ? 0 : p->tree->all[node->parent].kind;

	buf[0] = '\0';
	if (node->kind && node->kind != TREE_MIXED && node->kind != above)
		snprintf(buf, SHAPE_MAX, "  [%s]", growth_shape_name(node->kind - 1));
	return buf;
}

/* How many columns there are for the name of node @number, which has these beside it; 0: any. */
static size_t room_for_name(const struct printer *p, const char *branch, const char *told,
			    const char *location, size_t others)
{
	size_t beside = (size_t)(p->bytes_width + p->blocks_width) + 2 + text_columns(branch) +
			(told ? text_columns(told) + strlen(" []") : 0) +
			(*location ? 2 + text_columns(location) : 0) + others;

	for (size_t i = 0; i < p->indent; i++)
		beside += (p->prefix[i] & 0xc0) != 0x80;
	return name_room(p->columns, beside);
}

/* Print the name of @label where there is room for all of it: many nodes have the same. */
static void print_whole_name(const struct printer *p, uint32_t label)
{
	const char *name = p->labels->all[label].name;

	if (p->names && !p->names[label])
		p->names[label] = short_name(name);
	if (p->names && p->names[label])
		fputs(p->names[label], p->out);
	else
		name_print(p->out, name, 0);
}

/* Print what is behind the numbers of the node: branches, name and @location. */
static void print_call(const struct printer *p, uint32_t number, const char *branch,
		       const char *location)
{
	const struct tree_node *node = &p->tree->all[number];
	const struct label *label = &p->labels->all[node->label];
	const char *told = tree_told(p->tree, number);
	char times[TIMES_MAX], shape[SHAPE_MAX];

	times_text(times, node);
	shape_text(shape, p, number);
	fputs("  ", p->out);
	fwrite(p->prefix, 1, p->indent, p->out);
	fputs(branch, p->out);
	fputs(color_of(p->color, label->name[0] == '[' ? COLOR_REMARK : COLOR_NAME), p->out);
	if (p->columns)
		name_print(p->out, label->name,
			   room_for_name(p, branch, told, location, strlen(times) + strlen(shape)));
	else
		print_whole_name(p, node->label);
	fputs(color_of(p->color, COLOR_END), p->out);
	if (told)
		fprintf(p->out, " [%s]", told);
	fputs(times, p->out);
	if (is_gone(p, number))
		fputs(GONE, p->out);
	if (*location)
		fprintf(p->out, "  %s%s%s", color_of(p->color, COLOR_PLACE), location,
			color_of(p->color, COLOR_END));
	fputs(shape, p->out);
}

/* The columns of numbers of @node. */
static const char *numbers_text(struct printer *p, const struct tree_node *node)
{
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];
	bool heavy = tree_weight(p->tree, node) >= p->heavy;

	if (p->numbers[0] && node->bytes == p->shown.bytes && node->blocks == p->shown.blocks)
		return p->numbers;
	snprintf(p->numbers, sizeof(p->numbers), "%s%*s%s%*s",
		 color_of(p->color, heavy ? COLOR_HEAVY : COLOR_NONE), p->bytes_width,
		 size_cell(bytes, node->bytes), color_of(p->color, COLOR_END), p->blocks_width,
		 text_number(blocks, node->blocks));
	p->shown = (struct live_amount){.blocks = node->blocks, .bytes = node->bytes};
	return p->numbers;
}

static void print_node(struct printer *p, uint32_t number, const char *branch)
{
	const struct tree_node *node = &p->tree->all[number];
	char blocks[TEXT_NUMBER_MAX], suspects[TEXT_NUMBER_MAX], *made;
	const char *location = tree_location(p->tree, p->labels, node, &made);

	fputs(numbers_text(p, node), p->out);
	print_call(p, number, branch, location ? location : "");
	if (node->suspects)
		fprintf(p->out, "  [suspect: %s of %s]", text_number(suspects, node->suspects),
			text_number(blocks, node->blocks));
	fputc('\n', p->out);
	free(made);
}

/* Has @number, which may be TREE_NONE, room on the terminal? */
static bool has_room(const struct printer *p, uint32_t number)
{
	return number != TREE_NONE &&
	       (!p->rows || tree_weight(p->tree, &p->tree->all[number]) > p->least ||
		(tree_weight(p->tree, &p->tree->all[number]) == p->least && p->equals));
}

/* How many nodes there are from @number on, with those below and behind. */
static size_t nodes_from(const struct tree *tree, uint32_t number)
{
	size_t nr = 0;

	for (; number != TREE_NONE; number = tree->all[number].next)
		nr += 1 + nodes_from(tree, tree->all[number].first);
	return nr;
}

/* For @number, and what is behind and below it, there is no room. */
static void hide_from(struct printer *p, uint32_t number)
{
	p->hidden += nodes_from(p->tree, number);
	for (; number != TREE_NONE; number = p->tree->all[number].next) {
		p->hidden_amount.bytes += p->tree->all[number].bytes;
		p->hidden_amount.blocks += p->tree->all[number].blocks;
	}
}

/* Recursion is as deep as the tree, which is at most VIEW_MAX_PATH. */
static void print_children(struct printer *p, uint32_t first)
{
	bool branches = first != TREE_NONE && p->tree->all[first].next != TREE_NONE;
	uint32_t at = first;

	while (has_room(p, at)) {
		const struct tree_node *node = &p->tree->all[at];
		bool last = node->next == TREE_NONE;
		const char *below = !branches ? "" : last ? p->lines->gap : p->lines->through;
		size_t len = strlen(below);

		p->equals -= p->rows && tree_weight(p->tree, node) == p->least;
		print_node(p, at, !branches ? "" : last ? p->lines->last_branch : p->lines->branch);
		assert(p->indent + len <= sizeof(p->prefix));
		memcpy(p->prefix + p->indent, below, len);
		p->indent += len;
		print_children(p, node->first);
		p->indent -= len;
		at = node->next;
	}
	hide_from(p, at);
}

static int heavier(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/* Find from which weight on nodes have room, if not all of them do.  Returns 0 or -ENOMEM. */
static int limit_rows(struct printer *p)
{
	size_t nr = p->tree->nr - 1; /* without the root */
	uint64_t *all;

	if (!p->rows || nr <= p->rows) {
		p->rows = 0;
		return 0;
	}
	all = calloc(nr, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		all[i] = tree_weight(p->tree, &p->tree->all[i + 1]);
	qsort(all, nr, sizeof(*all), heavier);
	p->least = all[p->rows - 1];
	for (size_t i = p->rows; i-- > 0 && all[i] == p->least;)
		p->equals++;
	free(all);
	return 0;
}

static int width_for(const char *number)
{
	/* one more: numbers of two columns never touch */
	int width = (int)strlen(number) + 1;

	return width > LEAST_WIDTH ? width : LEAST_WIDTH;
}

/* The columns are as wide as the roots want, which have the largest numbers. */
static void set_widths(struct printer *p)
{
	uint64_t bytes = 0, blocks = 0;
	char size[SIZE_TEXT_MAX], number[TEXT_NUMBER_MAX];

	for (uint32_t at = p->tree->all[TREE_ROOT].first; at != TREE_NONE;
	     at = p->tree->all[at].next) {
		const struct tree_node *root = &p->tree->all[at];

		bytes = root->bytes > bytes ? root->bytes : bytes;
		blocks = root->blocks > blocks ? root->blocks : blocks;
	}
	p->bytes_width = width_for(size_cell(size, bytes));
	p->blocks_width = width_for(text_number(number, blocks));
}

static void print_as(struct printer *p, const char *order)
{
	uint32_t at = p->tree->all[TREE_ROOT].first;
	FILE *out = p->out;

	set_widths(p);
	p->names = calloc(p->labels->nr + 1, sizeof(*p->names));
	fprintf(out, "%*s%*s  call path (%s)\n", p->bytes_width, size_title(), p->blocks_width,
		"blocks", order);
	while (has_room(p, at)) {
		const struct tree_node *root = &p->tree->all[at];

		p->equals -= p->rows && tree_weight(p->tree, root) == p->least;
		print_node(p, at, "");
		print_children(p, root->first);
		at = root->next;
		/* without the gap a root would look like the last function of the path above it */
		if (at != TREE_NONE)
			fputc('\n', out);
	}
	hide_from(p, at);
	print_limited(out, p->hidden, "line of a tree", "lines of the tree", p->hidden_amount);
	for (size_t i = 0; p->names && i < p->labels->nr; i++)
		free(p->names[i]);
	free(p->names);
}

void print_tree(FILE *out, const struct tree *tree, const struct labels *labels, const char *order)
{
	print_as(
		&(struct printer){
			.out = out, .tree = tree, .labels = labels, .lines = &ascii_lines},
		order);
}

/* The same for a terminal: in colours, what is a tenth of all stands out. */
static int print_on_terminal(FILE *out, const struct tree *tree, const struct view *view,
			     const char *order)
{
	int err;
	struct printer p = {
		.out = out,
		.tree = tree,
		.labels = view->labels,
		.view = view,
		.color = view->opts.color,
		.columns = view->opts.columns,
		.rows = view->opts.rows,
		.lines = view->opts.utf8 ? &utf8_lines : &ascii_lines,
	};
	uint64_t all = 0;

	for (uint32_t at = tree->all[TREE_ROOT].first; at != TREE_NONE; at = tree->all[at].next)
		all += tree_weight(tree, &tree->all[at]);
	p.heavy = all / 10 + 1;
	err = limit_rows(&p);
	if (!err)
		print_as(&p, order);
	return err;
}

static void print_left_out_stacks(FILE *out, const struct view *view)
{
	if (view->left_out)
		fputc('\n', out);
	print_left_out(out, view->left_out, "lighter stack", "lighter stacks",
		       view->left_out_amount);
}

/* Is this worth a mark?  What stopped growing is not. */
static bool is_marked(enum growth_shape shape)
{
	return shape != SHAPE_STEADY && shape != SHAPE_ONCE;
}

/* The kinds of the view's stacks, to be freed; NULL: there is no memory. */
static uint32_t *kinds_of(const struct view *view, const struct growth_rows *grown)
{
	uint32_t *kinds = calloc(view->nr, sizeof(*kinds));

	for (size_t i = 0; kinds && i < grown->nr; i++)
		if (grown->all[i].i < view->nr && is_marked(grown->all[i].shape))
			kinds[grown->all[i].i] = grown->all[i].shape + 1u;
	return kinds;
}

/* Say what the marks in names mean, of those that are there. */
static void explain_marks(FILE *out, const struct symbols *names)
{
	if (names->guessed)
		fputs("\n[guessed]: found without unwind information; such a caller may be "
		      "wrong, or callers between may be missing\n",
		      out);
	if (names->generated)
		fputs("\n" NAMES_GENERATED ": what a runtime compiled, without names; the guide "
		      "says how Node.js and Java give them\n",
		      out);
}

int print_view_as_tree(FILE *out, const struct view *view, const char *order,
		       const struct growth_rows *grown)
{
	uint32_t *kinds = NULL;
	struct tree *tree;
	int err;

	if (!view->nr) {
		fputs("no outstanding blocks\n", out);
		return 0;
	}
	err = tree_new(&tree);
	if (!err && grown) {
		kinds = kinds_of(view, grown);
		err = kinds ? 0 : -ENOMEM;
	}
	if (!err)
		err = view_tree_fill(tree, view, kinds);
	if (!err)
		err = print_on_terminal(out, tree, view, order);
	if (!err) {
		explain_marks(out, view->names);
		print_left_out_stacks(out, view);
	}
	free(kinds);
	tree_free(tree);
	return err;
}
