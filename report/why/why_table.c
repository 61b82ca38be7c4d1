/* why_table.c - what each root holds, and the first blocks below it by their stacks */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/base/hash_index.h"
#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/why/why.h"

#define ROOTS_SHOWN  20
#define FIRSTS_SHOWN 5

/* Blocks that hang on one root alone, of one stack and class. */
struct first_blocks {
	uint32_t node;
	uint32_t stack_and_class; /* 8 * stack + class */
	struct live_amount retained;
	uint64_t blocks; /* they themselves */
};

/* A root, or what is held by several. */
struct root_row {
	uint32_t node;
	struct live_amount retained;
	size_t first, nr; /* of the first blocks */
};

struct table_of_roots {
	INTERN_OF(struct first_blocks);
	struct root_row *rows;
	size_t nr_rows;
};

static int add_first(struct table_of_roots *t, const struct why *why, uint32_t block)
{
	const struct holders *h = why->h;
	const struct first_blocks new = {
		.node = h->idom[block],
		.stack_and_class = why->stacks[block] * 8 + h->classes[block],
	};
	uint32_t number;

	if (new.node < h->nr_blocks || new.node == HOLDERS_NONE)
		return 0;
	if (intern_pair(&t->table, &new, sizeof(new), &number) < 0)
		return -ENOMEM;
	live_amount_add(&t->all[number].retained, h->retained[block]);
	t->all[number].blocks += why->with.amounts ? why->with.amounts[block].blocks : 1;
	return 0;
}

static int compare_amounts(struct live_amount a, struct live_amount b)
{
	if (a.bytes != b.bytes)
		return a.bytes > b.bytes ? -1 : 1;
	return (a.blocks < b.blocks) - (a.blocks > b.blocks);
}

static int by_node(const void *a, const void *b)
{
	const struct first_blocks *x = a, *y = b;
	int order = compare_amounts(x->retained, y->retained);

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return order ? order
		     : (x->stack_and_class > y->stack_and_class) -
			       (x->stack_and_class < y->stack_and_class);
}

static int by_amount(const void *a, const void *b)
{
	const struct root_row *x = a, *y = b;
	int order = compare_amounts(x->retained, y->retained);

	return order ? order : (x->node > y->node) - (x->node < y->node);
}

/* The sorted first blocks: each run of one root is a row. */
static int make_rows(struct table_of_roots *t)
{
	if (t->nr)
		qsort(t->all, t->nr, sizeof(*t->all), by_node);
	t->rows = calloc(t->nr + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr; i++) {
		struct root_row *row = &t->rows[t->nr_rows];

		if (!i || t->all[i - 1].node != t->all[i].node) {
			row = &t->rows[t->nr_rows++];
			*row = (struct root_row){.node = t->all[i].node, .first = i};
		} else {
			row--;
		}
		row->nr++;
		live_amount_add(&row->retained, t->all[i].retained);
	}
	qsort(t->rows, t->nr_rows, sizeof(*t->rows), by_amount);
	return 0;
}

static uint32_t stack_of(const struct first_blocks *f)
{
	return f->stack_and_class / 8;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void put_amount(const struct why *why, struct live_amount amount)
{
	uint64_t all = why->h->retained[holders_all(why->h)].bytes;
	char size[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	fprintf(why->out, "%12s%7.1f %%%12s  ", size_cell(size, amount.bytes),
		all ? 100.0 * (double)amount.bytes / (double)all : 0.0,
		text_number(blocks, amount.blocks));
}

static void put_row(const struct why *why, const struct table_of_roots *t,
		    const struct root_row *row)
{
	char *text = why_root_text(why, row->node), number[TEXT_NUMBER_MAX];
	size_t shown = least(row->nr, why->opts->top ? why->opts->top : FIRSTS_SHOWN);

	put_amount(why, row->retained);
	fprintf(why->out, "%s\n", text ? text : "");
	free(text);
	for (size_t i = 0; i < shown; i++) {
		const struct first_blocks *f = &t->all[row->first + i];

		put_amount(why, f->retained);
		fprintf(why->out, "  %s %s%s: ", text_number(number, f->blocks),
			text_blocks(f->blocks), why_class_text((uint8_t)(f->stack_and_class % 8)));
		why_print_stack(why, stack_of(f), "                                       ");
	}
	if (shown < row->nr)
		fprintf(why->out, "%35sand %s more stack%s (--top)\n", "",
			text_number(number, row->nr - shown), row->nr - shown == 1 ? "" : "s");
}

static void put_text(const struct why *why, const struct table_of_roots *t, size_t shown)
{
	char number[TEXT_NUMBER_MAX];

	fprintf(why->out, "%12s%9s%12s  %s\n", size_title(), "share", "blocks",
		"held by, and the first blocks below it");
	for (size_t i = 0; i < shown; i++)
		put_row(why, t, &t->rows[i]);
	if (shown < t->nr_rows)
		fprintf(why->out, "%33sand %s more (--top)\n", "",
			text_number(number, t->nr_rows - shown));
	fputs("\nsize: what only this root holds, and what only those blocks do\n"
	      "possibly: by a word into the middle of a block; stale: by words that nothing "
	      "reads\n",
	      why->out);
}

static void put_json(struct why *why, const struct table_of_roots *t, size_t shown)
{
	struct json *json = why->json;

	json_open(json, "holders", '[');
	for (size_t i = 0; i < shown; i++) {
		const struct root_row *row = &t->rows[i];

		json_open(json, NULL, '{');
		why_root_json(why, row->node);
		json_number(json, "bytes", row->retained.bytes);
		json_number(json, "blocks", row->retained.blocks);
		json_open(json, "first_blocks", '[');
		for (size_t k = row->first; k < row->first + row->nr; k++) {
			json_open(json, NULL, '{');
			json_number(json, "bytes", t->all[k].retained.bytes);
			json_number(json, "blocks", t->all[k].retained.blocks);
			json_number(json, "first", t->all[k].blocks);
			json_bool(json, "possible",
				  t->all[k].stack_and_class % 8 == HOLDER_OF_POSSIBLE);
			why_stack_json(why, stack_of(&t->all[k]));
			json_close(json, '}');
		}
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

static int want_stacks(struct why *why, const struct table_of_roots *t, size_t shown)
{
	int err = 0;

	for (size_t i = 0; i < shown && !err; i++)
		for (size_t k = 0; k < t->rows[i].nr && !err; k++)
			if (why->json || why->opts->top || k < FIRSTS_SHOWN)
				err = why_want(why, stack_of(&t->all[t->rows[i].first + k]));
	return err ? err : why_resolve(why);
}

int why_print_table(struct why *why)
{
	struct table_of_roots t = {.rows = NULL};
	size_t most = why->opts->top ? why->opts->top : why->json ? SIZE_MAX : ROOTS_SHOWN, shown;
	int err = 0;

	for (uint32_t i = 0; i < why->h->nr_blocks && !err; i++)
		err = add_first(&t, why, i);
	if (!err)
		err = make_rows(&t);
	shown = least(t.nr_rows, most);
	if (!err)
		err = want_stacks(why, &t, shown);
	if (!err && why->json)
		put_json(why, &t, shown);
	else if (!err)
		put_text(why, &t, shown);
	free(t.rows);
	intern_release(&t.table);
	return err;
}
