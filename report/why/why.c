/* why.c - see why.h */
#include "report/why/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/text.h"
#include "report/name/stack_id.h"
#include "report/reach/root_text.h"

#define LINE_COLUMNS	56 /* for a stack in a line, where there is no terminal */
#define COLUMNS_BESIDE	64 /* of a row, and for the place in the source */
#define MAPPING_COLUMNS 40
#define MOST_MAPPINGS	1000 /* of which the stacks are named */

/* A recorded mapping is no block here, but memory that may hold some. */
static void note_mapping(struct why *why, const struct live_block *block)
{
	const struct why_mapping mapping = {block->addr, block->addr + block->size, block->stack};

	if (why->nr_mappings < MOST_MAPPINGS &&
	    array_append(&why->mappings, &why->nr_mappings, &why->room_mappings, &mapping,
			 sizeof(mapping)))
		why->err = -ENOMEM;
}

/* What is known of a block. */
static void note_stack(void *arg, const struct live_block *block)
{
	struct why *why = arg;
	uint32_t at;

	/* of a block from before nothing is known, of a damaged trace perhaps no stack */
	if (block->tgid != why->process->tgid || !block->known ||
	    block->stack >= why->leaks->stacks->nr || block->stack >= WHY_NO_STACK)
		return;
	if (block->mapped) {
		note_mapping(why, block);
		return;
	}
	at = why_block_at(why, block->addr);
	if (at != HOLDERS_NONE && why->with.blocks[at].start == block->addr &&
	    why->with.blocks[at].time_ns == block->time_ns)
		why->stacks[at] = block->stack;
}

int why_init(struct why *why, const struct replay *leaks, const struct verdicts *verdicts, size_t i,
	     const struct why_opts *opts)
{
	const struct symbols_source source = {.dw = leaks->dw, .images = leaks->images};
	int err;

	*why = (struct why){.leaks = leaks,
			    .opts = opts,
			    .process = verdicts_process(verdicts, i),
			    .with = verdicts_holders(verdicts, i),
			    .out = stdout};
	why->h = why->with.holders;
	why->stacks = malloc((why->with.nr + 1) * sizeof(*why->stacks));
	if (!why->stacks)
		return -ENOMEM;
	for (size_t at = 0; at < why->with.nr; at++)
		why->stacks[at] = WHY_NO_STACK;
	live_each(leaks->live, note_stack, why);
	err = why->err ? why->err : stack_names_new(&why->named, &source, opts->view);
	for (size_t at = 0; at < why->nr_mappings && !err; at++)
		err = why_want(why, why->mappings[at].stack);
	return err;
}

uint32_t why_block_at(const struct why *why, uint64_t address)
{
	const struct reach_block *blocks = why->with.blocks;
	size_t low = 0, high = why->with.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (blocks[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && (address < blocks[low - 1].end || address == blocks[low - 1].start)
		       ? (uint32_t)(low - 1)
		       : HOLDERS_NONE;
}

int why_want(struct why *why, uint32_t number)
{
	return number == WHY_NO_STACK
		       ? 0
		       : stack_names_want(why->named, why->leaks->stacks->all[number].id);
}

int why_resolve(struct why *why)
{
	return stack_names_resolve(why->named);
}

/* The line of the stack by which what is at @address was mapped; NULL: it is not known. */
static char *mapping_text(const struct why *why, uint64_t address)
{
	for (size_t i = 0; i < why->nr_mappings; i++)
		if (address >= why->mappings[i].start && address < why->mappings[i].end)
			return stack_names_line(why->named,
						why->leaks->stacks->all[why->mappings[i].stack].id,
						MAPPING_COLUMNS, 0);
	return NULL;
}

static void put_root(const struct why *why, FILE *out, const struct root_name *name)
{
	const char *thread =
		thread_names_get(why->leaks->threads, why->process->tgid, name->number);
	char *mapping =
		name->kind == ROOT_MEMORY && !name->name[0] ? mapping_text(why, name->start) : NULL;

	root_text_print(out, name, thread, mapping);
	free(mapping);
}

static const struct root_name *name_of(const struct why *why, uint32_t node)
{
	uint32_t number = node - why->h->nr_blocks;

	return number + 2 < why->h->nr_roots ? root_names_get(why->with.roots, number) : NULL;
}

char *why_root_text(const struct why *why, uint32_t node)
{
	const struct root_name *name = name_of(why, node);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out && name)
		put_root(why, out, name);
	else if (out)
		fputs(node == holders_lost(why->h) ? "nothing: lost"
		      : node == holders_moved(why->h)
			      ? "what an earlier pass saw, and the last did not"
			      : "several of these, or several others",
		      out);
	if (out && !fclose(out))
		return text;
	free(text);
	return NULL;
}

const char *why_root_word(const struct why *why, uint32_t node)
{
	const struct root_name *name = name_of(why, node);

	if (name)
		return root_text_word(name->kind);
	return node == holders_lost(why->h)    ? "lost"
	       : node == holders_moved(why->h) ? "moved"
					       : "several";
}

void why_root_json(struct why *why, uint32_t node)
{
	const struct root_name *name = name_of(why, node);
	char *text = why_root_text(why, node);
	struct json *json = why->json;

	json_text(json, "kind", why_root_word(why, node));
	json_text(json, "text", text ? text : "");
	free(text);
	if (!name)
		return;
	root_text_json(json, name);
}

void why_print_stack(const struct why *why, uint32_t number, const char *indent)
{
	size_t columns = why->opts->columns > LINE_COLUMNS + COLUMNS_BESIDE
				 ? why->opts->columns - COLUMNS_BESIDE
				 : LINE_COLUMNS;
	const char *place;
	uint32_t id;
	char *line;

	if (number == WHY_NO_STACK) {
		fputs("[freed since, or from before the recording]\n", why->out);
		return;
	}
	id = why->leaks->stacks->all[number].id;
	place = stack_names_location(why->named, id);
	line = stack_names_line(why->named, id, columns, 0);
	fprintf(why->out, "%s%s%s\n", line ? line : "", place[0] ? "  " : "", place);
	free(line);
	if (why->opts->whole_stacks)
		stack_names_print(why->named, why->out, id, indent);
}

static uint64_t id_of_stack(const struct why *why, uint32_t number)
{
	const struct symbols_source source = {.dw = why->leaks->dw, .images = why->leaks->images};
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr = stacks_frames(why->leaks->stacks, number, frames);

	return stack_id(&source, frames, nr);
}

void why_stack_json(struct why *why, uint32_t number)
{
	char id[STACK_ID_MAX];

	if (number == WHY_NO_STACK)
		return;
	json_text(why->json, "id", stack_id_text(id, id_of_stack(why, number)));
	stack_names_json(why->named, why->json, why->leaks->stacks->all[number].id);
}

const char *why_class_text(uint8_t class)
{
	return class == HOLDER_OF_POSSIBLE ? " (possibly)"
	       : class == HOLDER_OF_STALE  ? " (stale)"
					   : "";
}

void why_release(struct why *why)
{
	stack_names_free(why->named);
	free(why->mappings);
	free(why->stacks);
	*why = (struct why){0};
}
