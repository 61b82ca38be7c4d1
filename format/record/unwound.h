/* unwound.h - the payload of an UNWOUND chunk, doc/trace-format.md 4.11 */
#ifndef MLK_UNWOUND_H
#define MLK_UNWOUND_H

#include "format/chunk/codec.h"
#include "format/record/arena.h"
#include "format/unwound.h"

/* Append @unwound, and the heads of the events of the EVENTS payload @events, to @payload, whose
 * ->failed is set if memory runs out.  Returns 0, -EINVAL: a number does not fit the others, or a
 * path is too long, or MLK_E_CORRUPT: @events does not decode. */
int mlk_unwound_encode(struct mlk_enc *payload, const struct mlk_unwound *unwound,
		       struct mlk_dec *events);

/* Columns of a payload that tell what the stacks are, without those of the ALLOCs. */
#define MLK_UNWOUND_TABLES 5

/* Append the modules and stacks of @unwound to the MLK_UNWOUND_TABLES @columns, whose ->failed are
 * set if memory runs out.  Returns 0, or -EINVAL as below. */
int mlk_unwound_put_tables(struct mlk_enc *columns, const struct mlk_unwound *unwound);

/* What was read last, and what reading takes; all zero before. */
struct mlk_unwound_room {
	struct mlk_unwound_module *modules;
	struct mlk_unwound_stack *stacks; /* number 1 first */
	uint32_t *allocs;
	uint64_t *pcs;	  /* by module: of the last frame in it */
	uint16_t *depths; /* by number of a stack: its frames */
	uint32_t *next;	  /* by number of a stack: which followed it last */
	size_t nr_modules, nr_stacks, nr_allocs, nr_pcs, nr_depths, nr_next; /* room for so many */
};

/* Read the payload @d into @room; strings are in @text, where text->failed is set if memory runs
 * out.  *@unwound points to both.  Then @d is an EVENTS payload of which there are heads alone.
 * Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_unwound_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_unwound_room *room,
		       struct mlk_unwound *unwound);

/* Read the modules and stacks that @unwound counts from the MLK_UNWOUND_TABLES @columns into @room,
 * where there is room for its ALLOCs, too, which the caller has compared with the payload's length.
 * Returns as mlk_unwound_decode(). */
int mlk_unwound_get_tables(struct mlk_dec *columns, struct mlk_arena *text,
			   struct mlk_unwound_room *room, struct mlk_unwound *unwound);

/* Free what reading took. */
void mlk_unwound_release(struct mlk_unwound_room *room);

#endif
