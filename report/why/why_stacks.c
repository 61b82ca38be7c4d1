/* why_stacks.c - who holds all blocks of some stacks: by root, and by the stacks of the blocks on
 * the way from it */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/base/hash_index.h"
#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/why/why.h"

#define ROWS_SHOWN   20
#define VIA_SHOWN    8 /* stacks of a way */
#define REPEATS_SEEN 4 /* a way that comes back to one of so many stacks is one round of it */
#define NO_WAY	     UINT32_MAX

/* Ways from a root, by stacks: each is one more stack behind another way. */
struct stack_way {
	uint32_t before; /* NO_WAY: stack is a root's node */
	uint32_t stack;
	struct live_amount amount; /* of the blocks that are asked for, at its end */
	uint64_t possible;	   /* of these: held by a word into a middle */
	uint64_t by_others;	   /* of these: a block of the same way is before them */
	uint32_t example;	   /* one of them */
};

struct stack_ways {
	INTERN_OF(struct stack_way);
	uint32_t *of_block;
	uint32_t *rows; /* those at whose end there are blocks */
	size_t nr_rows;
};

/* The way that goes on from @before to @stack.  A list of a thousand blocks is one step. */
static int go_on(struct stack_ways *ways, uint32_t before, uint32_t stack, uint32_t *way)
{
	const struct stack_way new = {.before = before, .stack = stack};
	uint32_t at = before;

	for (int i = 0; i < REPEATS_SEEN && ways->all[at].before != NO_WAY; i++) {
		if (ways->all[at].stack == stack) {
			*way = at;
			return 0;
		}
		at = ways->all[at].before;
	}
	return intern_pair(&ways->table, &new, sizeof(new), way) < 0 ? -ENOMEM : 0;
}

static int add_block(struct stack_ways *ways, const struct why *why, const bool *wanted,
		     uint32_t block)
{
	const struct holders *h = why->h;
	const struct reach_block *b = &why->with.blocks[block];
	uint32_t from = h->parent[block], stack = why->stacks[block], way;
	const struct stack_way root = {.before = NO_WAY, .stack = from};
	int err = 0;

	if (from < h->nr_blocks)
		way = ways->of_block[from];
	else
		err = intern_pair(&ways->table, &root, sizeof(root), &way) < 0 ? -ENOMEM : 0;
	if (!err)
		err = go_on(ways, way, stack, &ways->of_block[block]);
	if (!err && stack != WHY_NO_STACK && wanted[stack]) {
		struct stack_way *end = &ways->all[ways->of_block[block]];

		if (!end->amount.blocks)
			end->example = block;
		live_amount_add(&end->amount, why->with.amounts
						      ? why->with.amounts[block]
						      : (struct live_amount){1, b->end - b->start});
		end->possible += h->classes[block] == HOLDER_OF_POSSIBLE;
		end->by_others += ways->of_block[block] == way;
	}
	return err;
}

static int by_amount(const void *a, const void *b, void *arg)
{
	const struct stack_way *all = arg;
	const struct stack_way *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];

	if (x->amount.bytes != y->amount.bytes)
		return x->amount.bytes > y->amount.bytes ? -1 : 1;
	return (x->example > y->example) - (x->example < y->example);
}

static int find_ways(struct stack_ways *ways, const struct why *why, const bool *wanted)
{
	int err = 0;

	ways->of_block = malloc((why->with.nr + 1) * sizeof(*ways->of_block));
	if (!ways->of_block)
		return -ENOMEM;
	for (uint32_t i = 0; i < why->h->nr_order && !err; i++)
		err = add_block(ways, why, wanted, why->h->order[i]);
	if (!err) {
		ways->rows = malloc((ways->nr + 1) * sizeof(*ways->rows));
		err = ways->rows ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < ways->nr && !err; i++)
		if (ways->all[i].amount.blocks)
			ways->rows[ways->nr_rows++] = i;
	if (!err)
		qsort_r(ways->rows, ways->nr_rows, sizeof(*ways->rows), by_amount, ways->all);
	return err;
}

/* The stacks of @way from its root on, but its last one: the last VIA_SHOWN to @via.  Returns how
 * many there are in all, and the root's node in *@root. */
static size_t stacks_of_way(const struct stack_ways *ways, uint32_t way, uint32_t via[VIA_SHOWN],
			    uint32_t *root)
{
	size_t nr = 0;
	uint32_t at = ways->all[way].before;

	for (; ways->all[at].before != NO_WAY; at = ways->all[at].before)
		nr++;
	*root = ways->all[at].stack;
	at = ways->all[way].before;
	for (size_t i = nr; i-- > 0; at = ways->all[at].before)
		if (nr - i <= VIA_SHOWN)
			via[nr < VIA_SHOWN ? i : i + VIA_SHOWN - nr] = ways->all[at].stack;
	return nr;
}

static void put_row(struct why *why, const struct stack_ways *ways, uint32_t way,
		    struct live_amount all)
{
	const struct stack_way *w = &ways->all[way];
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX], total[TEXT_NUMBER_MAX];
	uint32_t via[VIA_SHOWN], root;
	size_t nr = stacks_of_way(ways, way, via, &root);
	char *text = why_root_text(why, root);

	fprintf(why->out, "  %s of %s %s, %s, held by %s%s\n",
		text_number(blocks, w->amount.blocks), text_number(total, all.blocks),
		text_blocks(all.blocks), size_text(bytes, w->amount.bytes), text ? text : "",
		w->possible ? why_class_text(HOLDER_OF_POSSIBLE) : "");
	free(text);
	if (w->by_others)
		fprintf(why->out, "      %s of them by others of the same stack\n",
			text_number(blocks, w->by_others));
	if (nr > VIA_SHOWN)
		fprintf(why->out, "      via %s more stack%s\n",
			text_number(blocks, nr - VIA_SHOWN), nr - VIA_SHOWN == 1 ? "" : "s");
	for (size_t i = 0; i < nr && i < VIA_SHOWN; i++) {
		fputs("      via ", why->out);
		why_print_stack(why, via[i], "            ");
	}
	fprintf(why->out, "      for example 0x%" PRIx64 "\n", why->with.blocks[w->example].start);
}

static void put_json_row(struct why *why, const struct stack_ways *ways, uint32_t way)
{
	const struct stack_way *w = &ways->all[way];
	struct json *json = why->json;
	uint32_t via[VIA_SHOWN], root;
	size_t nr = stacks_of_way(ways, way, via, &root);

	json_open(json, NULL, '{');
	json_open(json, "root", '{');
	why_root_json(why, root);
	json_close(json, '}');
	json_number(json, "bytes", w->amount.bytes);
	json_number(json, "blocks", w->amount.blocks);
	json_number(json, "possible", w->possible);
	json_number(json, "by_others_of_the_stack", w->by_others);
	json_number(json, "example", why->with.blocks[w->example].start);
	json_number(json, "steps", nr);
	json_open(json, "via", '[');
	for (size_t i = 0; i < nr && i < VIA_SHOWN; i++) {
		json_open(json, NULL, '{');
		why_stack_json(why, via[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static int want_ways(struct why *why, const struct stack_ways *ways, size_t shown)
{
	uint32_t via[VIA_SHOWN], root;
	int err = 0;

	for (size_t i = 0; i < shown && !err; i++) {
		size_t nr = stacks_of_way(ways, ways->rows[i], via, &root);

		for (size_t k = 0; k < nr && k < VIA_SHOWN && !err; k++)
			err = why_want(why, via[k]);
	}
	return err ? err : why_resolve(why);
}

static void put_rows(struct why *why, const struct stack_ways *ways, size_t shown)
{
	struct live_amount all = {0};
	char number[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < ways->nr_rows; i++)
		live_amount_add(&all, ways->all[ways->rows[i]].amount);
	if (why->json) {
		json_open(why->json, "held", '[');
		for (size_t i = 0; i < shown; i++)
			put_json_row(why, ways, ways->rows[i]);
		json_close(why->json, ']');
		return;
	}
	for (size_t i = 0; i < shown; i++)
		put_row(why, ways, ways->rows[i], all);
	if (shown < ways->nr_rows)
		fprintf(why->out, "  and in %s more way%s (--top)\n",
			text_number(number, ways->nr_rows - shown),
			ways->nr_rows - shown == 1 ? "" : "s");
	if (!ways->nr_rows)
		fputs("  none of their blocks was judged\n", why->out);
}

int why_print_stacks(struct why *why, const bool *wanted)
{
	struct stack_ways ways = {.rows = NULL};
	size_t most = why->opts->top ? why->opts->top : why->json ? SIZE_MAX : ROWS_SHOWN;
	int err = find_ways(&ways, why, wanted);

	if (!err) {
		most = most < ways.nr_rows ? most : ways.nr_rows;
		err = want_ways(why, &ways, most);
	}
	if (!err)
		put_rows(why, &ways, most);
	free(ways.of_block);
	free(ways.rows);
	intern_release(&ways.table);
	return err;
}
