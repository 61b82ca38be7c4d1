/* reuse.c - see reuse.h */
#include "format/event/reuse.h"

#include <errno.h>
#include <stdlib.h>

#include "format/chunk/codec.h"

void mlk_reuse_begin(struct mlk_reuse *r)
{
	r->nr = 0;
	r->behind = 0;
	memset(r->freed, 0, sizeof(r->freed));
}

void mlk_reuse_release(struct mlk_reuse *r)
{
	free(r->blocks);
	memset(r, 0, sizeof(*r));
}

int mlk_reuse_add(struct mlk_reuse *r, uint64_t addr, uint64_t size)
{
	if (r->nr == r->room && grow_array(&r->blocks, r->nr, &r->room, sizeof(*r->blocks)))
		return -ENOMEM;
	r->blocks[r->nr++] = (struct mlk_block_place){.addr = addr, .class = mlk_reuse_class(size)};
	r->behind = addr + mlk_reuse_taken(size);
	return 0;
}
