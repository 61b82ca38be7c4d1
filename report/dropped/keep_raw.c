/* keep_raw.c - see keep_raw.h */
#include "report/dropped/keep_raw.h"

#include <errno.h>
#include <stdlib.h>

#include "report/decode/stored_stacks.h"

struct keep_raw {
	struct mlk_copy *copy;
	struct stored_stacks *stacks;
};

int keep_raw_new(struct keep_raw **out, struct mlk_copy *copy)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->copy = copy;
	return 0;
}

int keep_raw_batch(struct keep_raw *keep, const struct replay *leaks, const struct batch *batch,
		   const uint32_t *ids)
{
	struct mlk_unwound stacks;
	int err = 0;

	if (!keep->stacks)
		err = stored_stacks_new(&keep->stacks, leaks->dw, leaks->images);
	if (!err)
		err = stored_stacks_gather(keep->stacks, batch, ids, &stacks);
	return err || !stacks.nr_allocs ? err : mlk_copy_unwound(keep->copy, &stacks);
}

void keep_raw_free(struct keep_raw *keep)
{
	if (!keep)
		return;
	stored_stacks_free(keep->stacks);
	free(keep);
}
