/* stacks.c - see stacks.h */
#include "report/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"

struct stacks {
	struct stack **all;
	size_t nr, room;
	struct hash_index index;
};

struct stack_key {
	const struct dwunw_frame *frames;
	size_t nr;
	enum dwunw_status status;
};

_Static_assert(sizeof(struct dwunw_frame) == 24, "no padding: frames are compared as bytes");

int stacks_new(struct stacks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static uint64_t hash_key(const struct stack_key *key)
{
	uint64_t hash = hash_word(key->status, key->nr);

	/* addr and flags nearly always follow from pc and module */
	for (size_t i = 0; i < key->nr; i++)
		hash = hash_word(hash + key->frames[i].module, key->frames[i].pc);
	return hash;
}

static bool same_stack(const void *things, uint32_t number, const void *arg)
{
	const struct stack *stack = ((const struct stacks *)things)->all[number];
	const struct stack_key *key = arg;

	return stack->nr_frames == key->nr && stack->status == key->status &&
	       (!key->nr || !memcmp(stack->frames, key->frames, key->nr * sizeof(*key->frames)));
}

static int append(struct stacks *stacks, const struct stack_key *key, uint64_t hash)
{
	struct stack **all;
	struct stack *stack;

	if (stacks->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(stacks->all, &stacks->room, stacks->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	stacks->all = all;
	stack = calloc(1, sizeof(*stack) + key->nr * sizeof(*key->frames));
	if (!stack)
		return -ENOMEM;
	stack->status = key->status;
	stack->nr_frames = key->nr;
	if (key->nr)
		memcpy(stack->frames, key->frames, key->nr * sizeof(*key->frames));
	if (hash_index_add(&stacks->index, hash, (uint32_t)stacks->nr)) {
		free(stack);
		return -ENOMEM;
	}
	stacks->all[stacks->nr++] = stack;
	return 0;
}

int stacks_intern(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr,
		  enum dwunw_status status, uint32_t *number)
{
	struct stack_key key = {.frames = frames, .nr = nr, .status = status};
	struct hash_query query = {
		.hash = hash_key(&key),
		.things = stacks,
		.key = &key,
		.equal = same_stack,
	};
	int err;

	if (hash_index_find(&stacks->index, &query, number))
		return 0;
	err = append(stacks, &key, query.hash);
	if (!err)
		*number = (uint32_t)(stacks->nr - 1);
	return err;
}

size_t stacks_nr(const struct stacks *stacks)
{
	return stacks->nr;
}

struct stack *stacks_get(const struct stacks *stacks, uint32_t number)
{
	return stacks->all[number];
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < stacks->nr; i++)
		free(stacks->all[i]);
	free(stacks->all);
	hash_index_release(&stacks->index);
	free(stacks);
}
