/* why_block.c - who holds one block: a shortest way to it from a root, or from a lost block */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "format/reader.h"
#include "report/base/text.h"
#include "report/context/print_block.h"
#include "report/why/why.h"

#define SHOWN_AT_ENDS 4 /* of a long way */
#define INDENT	      "      "

/* A step of the way: the word at this address leads to block. */
struct step {
	uint32_t from, block; /* from: a node */
	bool found;
	uint64_t address, value;
};

/* The way, from the root on; and the steps by the addresses of what they go from. */
struct way {
	struct step *steps;
	struct step **sorted;
	size_t nr;
};

static int find_way(const struct why *why, uint32_t block, struct way *way)
{
	const struct holders *h = why->h;
	uint32_t at = block;

	for (; at < h->nr_blocks; at = h->parent[at])
		way->nr++;
	way->steps = calloc(way->nr + 1, sizeof(*way->steps));
	way->sorted = calloc(way->nr + 1, sizeof(*way->sorted));
	if (!way->steps || !way->sorted)
		return -ENOMEM;
	at = block;
	for (size_t i = way->nr; i-- > 0; at = h->parent[at]) {
		way->steps[i] = (struct step){.from = h->parent[at], .block = at};
		way->sorted[i] = &way->steps[i];
	}
	return 0;
}

/* Nodes that are blocks have numbers in the order of their addresses. */
static int by_from(const void *a, const void *b)
{
	const struct step *const *x = a, *const *y = b;

	return ((*x)->from > (*y)->from) - ((*x)->from < (*y)->from);
}

static void take_if_leads(const struct why *why, struct step *s, const struct mlk_pointer *word)
{
	const struct reach_block *b = &why->with.blocks[s->block];

	if (s->found && (s->value == b->start || word->value != b->start))
		return;
	if (word->value != b->start && (word->value < b->start || word->value >= b->end))
		return;
	s->found = true;
	s->address = word->address;
	s->value = word->value;
}

/* Take the words that lead from block to block; those of one step lie in one block, and both
 * ascend. */
static void take_words(const struct why *why, struct way *way, size_t *next,
		       const struct mlk_pointers *words)
{
	const struct reach_block *blocks = why->with.blocks;
	const struct step *first = &way->steps[0];
	uint32_t root = first->from - why->h->nr_blocks;
	const struct root_name *name =
		root + 2 < why->h->nr_roots ? root_names_get(why->with.roots, root) : NULL;

	for (size_t i = 0; i < words->nr; i++) {
		const struct mlk_pointer *word = &words->words[i];

		if (name && word->address >= name->start && word->address < name->end)
			take_if_leads(why, &way->steps[0], word);
		while (*next < way->nr && way->sorted[*next]->from < why->h->nr_blocks &&
		       blocks[way->sorted[*next]->from].end <= word->address)
			(*next)++;
		if (*next < way->nr && way->sorted[*next]->from < why->h->nr_blocks &&
		    blocks[way->sorted[*next]->from].start <= word->address)
			take_if_leads(why, way->sorted[*next], word);
	}
}

/* The addresses of the words: they are in the trace. */
static int find_words(const struct why *why, struct mlk_reader *trace, struct way *way)
{
	struct mlk_record record;
	size_t next = 0;
	int more;

	qsort(way->sorted, way->nr, sizeof(*way->sorted), by_from);
	mlk_reader_rewind(trace, MLK_RECORD_POINTERS);
	while ((more = mlk_reader_next(trace, &record)) > 0)
		if (record.pointers.tgid == why->process->tgid &&
		    record.pointers.pass == why->process->last)
			take_words(why, way, &next, &record.pointers);
	return more;
}

/* Where the word of @s is in its holder. */
static uint64_t offset_of(const struct why *why, const struct step *s)
{
	const struct root_name *name;

	if (s->from < why->h->nr_blocks)
		return s->address - why->with.blocks[s->from].start;
	name = root_names_get(why->with.roots, s->from - why->h->nr_blocks);
	return s->address - (name->kind == ROOT_VARIABLE ? name->start : 0);
}

static void print_step(const struct why *why, const struct step *s)
{
	const struct reach_block *b = &why->with.blocks[s->block];
	char size[TEXT_NUMBER_MAX], word[64] = "";

	if (s->found)
		snprintf(word, sizeof(word), "%s0x%" PRIx64,
			 s->from < why->h->nr_blocks || root_names_get(why->with.roots,
								       s->from - why->h->nr_blocks)
									->kind == ROOT_VARIABLE
				 ? "+"
				 : "at ",
			 offset_of(why, s));
	fprintf(why->out, "    %-10s -> 0x%" PRIx64, word, b->start);
	if (s->found && s->value != b->start)
		fprintf(why->out, "+0x%" PRIx64, s->value - b->start);
	fprintf(why->out, "  %s %s  ", text_number(size, b->end - b->start),
		b->end - b->start == 1 ? "byte" : "bytes");
	why_print_stack(why, why->stacks[s->block], INDENT INDENT);
}

static bool is_shown(const struct way *way, size_t i)
{
	return way->nr <= 2 * SHOWN_AT_ENDS + 1 || i < SHOWN_AT_ENDS ||
	       i + SHOWN_AT_ENDS >= way->nr;
}

static void print_way(const struct why *why, const struct way *way)
{
	char number[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < way->nr; i++) {
		if (is_shown(way, i))
			print_step(why, &way->steps[i]);
		else if (is_shown(way, i - 1))
			fprintf(why->out, "    ... %s more %s ...\n",
				text_number(number, way->nr - 2 * SHOWN_AT_ENDS),
				text_blocks(way->nr - 2 * SHOWN_AT_ENDS));
	}
}

/* "is held by ..." */
static void print_answer(const struct why *why, const struct way *way)
{
	const struct holders *h = why->h;
	const struct step *first = &way->steps[0], *last = &way->steps[way->nr - 1];
	char *root = why_root_text(why, first->from);
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX];
	struct live_amount retained = h->retained[last->block];

	if (first->from == holders_lost(h) && way->nr == 1)
		fputs("  It is lost: no pointer to it is left, but from what it leads itself.\n",
		      why->out);
	else if (first->from == holders_lost(h))
		fprintf(why->out, "  It is lost with the block 0x%" PRIx64 ", which leads it:\n",
			why->with.blocks[first->block].start);
	else
		fprintf(why->out, "  It is held%s by: %s\n",
			h->classes[last->block] == HOLDER_OF_POSSIBLE ? ", possibly," : "",
			root ? root : "");
	free(root);
	if (first->from != holders_lost(h) || way->nr > 1)
		print_way(why, way);
	fprintf(why->out, "  With what it alone holds: %s bytes in %s %s\n",
		text_number(bytes, retained.bytes), text_number(blocks, retained.blocks),
		text_blocks(retained.blocks));
}

static void put_way(struct why *why, const struct way *way)
{
	struct json *json = why->json;
	struct live_amount retained = why->h->retained[way->steps[way->nr - 1].block];

	json_open(json, "root", '{');
	why_root_json(why, way->steps[0].from);
	json_close(json, '}');
	json_number(json, "retained_bytes", retained.bytes);
	json_number(json, "retained_blocks", retained.blocks);
	json_open(json, "path", '[');
	for (size_t i = 0; i < way->nr; i++) {
		const struct step *s = &way->steps[i];
		const struct reach_block *b = &why->with.blocks[s->block];

		json_open(json, NULL, '{');
		json_number(json, "address", b->start);
		json_number(json, "size", b->end - b->start);
		if (s->found) {
			json_number(json, "word_address", s->address);
			json_number(json, "offset", offset_of(why, s));
			json_bool(json, "interior", s->value != b->start);
		}
		why_stack_json(why, why->stacks[s->block]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* The block itself: its stack is the last one of the way. */
static void print_head(const struct why *why, uint32_t block, uint64_t address)
{
	const struct reach_block *b = &why->with.blocks[block];
	struct block_printer p = {.out = why->out,
				  .leaks = why->leaks,
				  .named = why->named,
				  .start_ns = mlk_reader_meta(why->leaks->trace)->start_ns,
				  .now_ns = why->leaks->chosen.end_ns};
	struct live_block live;
	char number[TEXT_NUMBER_MAX];

	if (address != b->start)
		fprintf(why->out, "  0x%" PRIx64 " is %s bytes into it\n", address,
			text_number(number, address - b->start));
	if (live_find(why->leaks->live, why->process->tgid, b->start, &live))
		print_block(&p, "block", &live);
}

int why_print_block(struct why *why, struct mlk_reader *trace, uint32_t block, uint64_t address)
{
	struct way way = {0};
	int err = find_way(why, block, &way);

	if (!err)
		err = find_words(why, trace, &way);
	for (size_t i = 0; i < way.nr && !err; i++)
		if (why->json || is_shown(&way, i))
			err = why_want(why, why->stacks[way.steps[i].block]);
	if (!err)
		err = why_resolve(why);
	if (!err && why->json) {
		json_text(why->json, "verdict",
			  block_verdict_word((enum block_verdict)why->with
						     .verdicts[way.steps[way.nr - 1].block]));
		put_way(why, &way);
	} else if (!err) {
		print_head(why, block, address);
		print_answer(why, &way);
	}
	free(way.steps);
	free(way.sorted);
	return err;
}
