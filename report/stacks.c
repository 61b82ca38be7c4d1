/* stacks.c - see stacks.h */
#include "report/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"

struct stacks {
	struct dwunw *dw;
	struct stack *all;
	size_t nr, room;
	uint32_t *numbers; /* by id, plus one: of the process that had it last; 0: not met */
	size_t nr_numbers;
};

int stacks_new(struct stacks **out, struct dwunw *dw)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dw = dw;
	return 0;
}

/* Have a number for each id given out so far. */
static int cover_ids(struct stacks *stacks)
{
	size_t room = stacks->nr_numbers;
	uint32_t *numbers =
		array_grow(stacks->numbers, &room, dwunw_stack_limit(stacks->dw), sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	memset(numbers + stacks->nr_numbers, 0, (room - stacks->nr_numbers) * sizeof(*numbers));
	stacks->numbers = numbers;
	stacks->nr_numbers = room;
	return 0;
}

static int append(struct stacks *stacks, uint32_t id, uint32_t process)
{
	struct stack *all;

	if (stacks->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(stacks->all, &stacks->room, stacks->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	stacks->all = all;
	all[stacks->nr++] = (struct stack){
		.status = dwunw_stack_status(stacks->dw, id),
		.id = id,
		.process = process,
		.next = stacks->numbers[id],
	};
	stacks->numbers[id] = (uint32_t)stacks->nr;
	return 0;
}

/* Bring the stack of @process to the front of those that have this @id.  False: it has none. */
static bool bring_forward(struct stacks *stacks, uint32_t id, uint32_t process)
{
	uint32_t *link = &stacks->numbers[id], number;

	while (*link && stacks->all[*link - 1].process != process)
		link = &stacks->all[*link - 1].next;
	number = *link;
	if (!number)
		return false;
	*link = stacks->all[number - 1].next;
	stacks->all[number - 1].next = stacks->numbers[id];
	stacks->numbers[id] = number;
	return true;
}

int stacks_add(struct stacks *stacks, uint32_t id, uint32_t process, uint32_t *number)
{
	int err = 0;

	if (id >= stacks->nr_numbers)
		err = cover_ids(stacks);
	if (!err && !bring_forward(stacks, id, process))
		err = append(stacks, id, process);
	if (!err)
		*number = stacks->numbers[id] - 1;
	return err;
}

size_t stacks_nr(const struct stacks *stacks)
{
	return stacks->nr;
}

struct stack *stacks_get(const struct stacks *stacks, uint32_t number)
{
	return &stacks->all[number];
}

size_t stacks_frames(const struct stacks *stacks, uint32_t number,
		     struct dwunw_frame frames[STACK_MAX_FRAMES])
{
	return dwunw_stack_frames(stacks->dw, stacks->all[number].id, frames, STACK_MAX_FRAMES);
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->all);
	free(stacks->numbers);
	free(stacks);
}
