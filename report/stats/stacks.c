/* stacks.c - see stacks.h */
#include "report/stats/stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/prefetch.h"

#define CACHE_LINE 64

int stacks_new(struct stacks **out, struct dwunw *dw)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dw = dw;
	return 0;
}

/* dwunw_stack_status(), which goes through all callers of @id: here only through those that are
 * not known yet.  Returns 0 or -ENOMEM. */
static int find_status(struct stacks *stacks, uint32_t id, enum dwunw_status *status)
{
	uint32_t known = id;

	if (array_cover(&stacks->statuses, &stacks->nr_statuses, dwunw_stack_limit(stacks->dw),
			sizeof(*stacks->statuses)))
		return -ENOMEM;
	while (known && !stacks->statuses[known])
		known = dwunw_stack_parent(stacks->dw, known);
	*status = known ? stacks->statuses[known] - 1u : dwunw_stack_status(stacks->dw, id);
	for (; id != known; id = dwunw_stack_parent(stacks->dw, id))
		stacks->statuses[id] = (uint8_t)(*status + 1);
	return 0;
}

uint32_t stacks_number(const struct stacks *stacks, uint32_t id)
{
	/* of one that was not added, 0 is stored */
	return id < stacks->nr_numbers ? stacks->numbers[id] - 1 : UINT32_MAX;
}

void stacks_expect(const struct stacks *stacks, uint32_t number)
{
	const struct stack *stack = &stacks->all[number];

	for (size_t at = 0; at < sizeof(*stack); at += CACHE_LINE)
		prefetch((const char *)stack + at);
}

int stacks_add(struct stacks *stacks, uint32_t id, uint32_t process, uint32_t *number)
{
	const struct stack stack = {.id = id, .process = process};
	int err;

	/* of the first process, often the only one, an array serves */
	if (!process && id < stacks->nr_numbers && stacks->numbers[id]) {
		*number = stacks->numbers[id] - 1;
		return 0;
	}
	err = intern_pair(&stacks->table, &stack, sizeof(stack), number);
	if (err > 0)
		err = find_status(stacks, id, &stacks->all[*number].status);
	if (!err && !process)
		err = array_cover(&stacks->numbers, &stacks->nr_numbers,
				  dwunw_stack_limit(stacks->dw), sizeof(*stacks->numbers));
	if (!err && !process)
		stacks->numbers[id] = *number + 1;
	return err;
}

size_t stacks_frames(const struct stacks *stacks, uint32_t number,
		     struct dwunw_frame frames[STACK_MAX_FRAMES])
{
	return dwunw_stack_frames(stacks->dw, stacks->all[number].id, frames, STACK_MAX_FRAMES);
}

size_t stacks_places(const struct stacks *stacks, uint32_t number, uint32_t *places, size_t most)
{
	return dwunw_stack_places(stacks->dw, stacks->all[number].id, places, most);
}

size_t stacks_frames_new(const struct stacks *stacks, uint32_t number, bool *met,
			 struct dwunw_frame frames[STACK_MAX_FRAMES])
{
	uint32_t first = stacks->all[number].id, id = first;
	size_t nr = 0;

	/* one more than the frames: the outermost has a caller that is none */
	for (; id && !met[id] && nr <= STACK_MAX_FRAMES; nr++)
		id = dwunw_stack_parent(stacks->dw, id);
	/* Of one for which there is no room nothing is met: stacks that begin at its callers have
	 * room for what it has not. */
	if (!id || met[id])
		for (id = first; id && !met[id]; id = dwunw_stack_parent(stacks->dw, id))
			met[id] = true;
	return dwunw_stack_frames(stacks->dw, first, frames,
				  nr < STACK_MAX_FRAMES ? nr : STACK_MAX_FRAMES);
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	intern_release(&stacks->table);
	free(stacks->numbers);
	free(stacks->statuses);
	free(stacks);
}
