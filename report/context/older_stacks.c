/* older_stacks.c - see older_stacks.h */
#include "report/context/older_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/base/hash_index.h"
#include "report/context/likely.h"
#include "report/reach/usable_size.h"
#include "report/reach/verdicts.h"

#define NAME	  "[before the recording]"
#define FINE	  1024 /* bytes: below, blocks of each size are a group of their own */
#define MOST_NAME 96
#define LIKELY	  "[likely: right for %.1f %% of the bytes of known blocks]"

/* Blocks of one process that are shown as one. */
struct group {
	uint32_t tgid;
	uint64_t size;	/* of the largest block that is in it */
	uint32_t name;	/* of what their first words point to: number of one of the firsts */
	uint32_t stack; /* that has likely allocated them; LIKELY_NONE: not known */
	struct live_amount amount;
};

/* What first words of blocks point to: a place of a file, and its name. */
struct first {
	const char *path; /* borrowed from the verdicts: the same for the same file, mostly */
	uint64_t offset;
	char *name; /* NULL: not known */
};

/* The groups being made. */
struct grouping {
	uint32_t wanted; /* verdicts */
	uint32_t pid;
	struct replay *leaks;
	struct likely *likely;
	char how_likely[MOST_NAME];
	struct groups {
		INTERN_OF(struct group);
	} groups;
	struct firsts {
		INTERN_OF(struct first);
	} firsts;
};

static bool same_group(const void *things, uint32_t number, const void *key)
{
	const struct group *a = &((const struct groups *)things)->all[number], *b = key;

	return a->tgid == b->tgid && a->size == b->size && a->name == b->name &&
	       a->stack == b->stack;
}

static bool same_first(const void *things, uint32_t number, const void *key)
{
	const struct first *a = &((const struct firsts *)things)->all[number], *b = key;

	return a->path == b->path && a->offset == b->offset;
}

/* The largest size of the group that a block of @size is in. */
static uint64_t size_of_group(uint64_t size)
{
	uint64_t most = FINE;

	if (size < FINE)
		return size;
	while (most <= size && most <= UINT64_MAX / 2)
		most *= 2;
	return most - 1;
}

/* The number, plus one, of what the first word of @block points to; 0: it has no name. */
static int find_first(struct grouping *g, const struct older_block *block, uint32_t *name)
{
	const struct first key = {block->first_path, block->first_offset, NULL};
	const struct hash_query query = {.hash = hash_word((uintptr_t)key.path, key.offset),
					 .things = &g->firsts,
					 .key = &key,
					 .equal = same_first};
	uint32_t module, number;
	int err = 0, found;

	*name = 0;
	if (!key.path)
		return 0;
	found = intern(&g->firsts.table, &query, &key, sizeof(key), &number);
	if (found < 0)
		return -ENOMEM;
	if (found && trace_modules_find_path(g->leaks->images, key.path, &module))
		err = dwunw_object_name(g->leaks->dw, module, key.offset,
					&g->firsts.all[number].name);
	*name = g->firsts.all[number].name ? number + 1 : 0;
	return err;
}

static int add_block(void *arg, const struct older_block *block)
{
	struct grouping *g = arg;
	struct group key = {.tgid = block->tgid, .size = size_of_group(block->size)};
	struct hash_query query = {.things = &g->groups, .key = &key, .equal = same_group};
	uint32_t number;
	int err;

	if (!(g->wanted >> block->verdict & 1) || (g->pid && g->pid != block->tgid))
		return 0;
	err = find_first(g, block, &key.name);
	if (err)
		return err;
	key.stack = likely_stack(g->likely, block);
	query.hash = hash_word(hash_word(hash_word(block->tgid, key.size), key.name), key.stack);
	if (intern(&g->groups.table, &query, &key, sizeof(key), &number) < 0)
		return -ENOMEM;
	live_amount_add(&g->groups.all[number].amount, (struct live_amount){1, block->size});
	return 0;
}

/* How many bytes were asked for: what is left of a size is not used. */
static void print_sizes(char *text, const struct group *group)
{
	if (group->size >= FINE)
		snprintf(text, MOST_NAME, "[%" PRIu64 " to %" PRIu64 " bytes]", group->size / 2 + 1,
			 group->size);
	else
		snprintf(text, MOST_NAME, "[%" PRIu64 " to %" PRIu64 " bytes]",
			 usable_size_least(group->size), group->size);
}

/* Give @group a stack, and count its blocks as outstanding of that. */
static int add_stack(const struct grouping *g, const struct group *group)
{
	struct replay *leaks = g->leaks;
	struct dwunw_frame *frames = malloc((STACK_MAX_FRAMES + 4) * sizeof(*frames));
	char sizes[MOST_NAME];
	size_t nr = 1;
	uint32_t id, process, number;
	int err;

	if (!frames)
		return -ENOMEM;
	print_sizes(sizes, group);
	err = trace_modules_remark(leaks->images, sizes, &frames[0]);
	if (!err && group->name)
		err = trace_modules_remark(leaks->images, g->firsts.all[group->name - 1].name,
					   &frames[nr++]);
	if (!err && group->stack != LIKELY_NONE) {
		nr += stacks_frames(leaks->stacks, group->stack, &frames[nr]);
		err = trace_modules_remark(leaks->images, g->how_likely, &frames[nr++]);
	}
	if (!err)
		err = trace_modules_remark(leaks->images, NAME, &frames[nr++]);
	if (!err)
		err = dwunw_stack_intern(leaks->dw, frames, nr, DWUNW_STATUS_ENDED, &id);
	if (!err)
		err = live_process_number(leaks->live, group->tgid, &process);
	if (!err)
		err = stacks_add(leaks->stacks, id, process, &number);
	free(frames);
	if (err)
		return err;
	leaks->stacks->all[number].bytes += group->amount.bytes;
	leaks->stacks->all[number].blocks += group->amount.blocks;
	live_amount_add(&leaks->older, group->amount);
	return 0;
}

/* Learn from the blocks that are known, which stacks are likely. */
static int learn(struct grouping *g, const struct verdicts *verdicts)
{
	struct replay *leaks = g->leaks;
	int err = likely_new(&g->likely, leaks, verdicts);

	if (err)
		return err;
	likely_test(g->likely, &leaks->guessed, &leaks->guessed_right);
	snprintf(g->how_likely, sizeof(g->how_likely), LIKELY,
		 leaks->guessed.bytes
			 ? 100.0 * (double)leaks->guessed_right.bytes / (double)leaks->guessed.bytes
			 : 0.0);
	return 0;
}

int older_stacks_add(struct replay *leaks, const struct verdict_choice *choice)
{
	struct grouping g = {.wanted = choice->wanted, .pid = leaks->choice.pid, .leaks = leaks};
	int err;

	if (!choice->wanted || !choice->verdicts)
		return 0;
	err = learn(&g, choice->verdicts);
	if (!err)
		err = verdicts_each_older(choice->verdicts, add_block, &g);
	for (size_t i = 0; i < g.groups.nr && !err; i++)
		err = add_stack(&g, &g.groups.all[i]);
	for (size_t i = 0; i < g.firsts.nr; i++)
		free(g.firsts.all[i].name);
	likely_free(g.likely);
	intern_release(&g.groups.table);
	intern_release(&g.firsts.table);
	return err;
}
