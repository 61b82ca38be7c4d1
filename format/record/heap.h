/* heap.h - HEAP chunks, doc/trace-format.md 4.20 */
#ifndef MLK_RECORD_HEAP_H
#define MLK_RECORD_HEAP_H

#include "format/chunk/codec.h"
#include "format/heap.h"
#include "format/record/arena.h"

/* Memory for what a reader lends out; all zero: none. */
struct mlk_heap_room {
	struct mlk_heap_block *blocks;
	struct mlk_heap_arena *arenas;
};

/* Append to @e.  Returns 0 or -EINVAL: too many, or not in order. */
int mlk_heap_encode(struct mlk_enc *e, const struct mlk_heap *heap);

/* Read one from @d; what it points to lies in @room, strings in @text.  Returns 0, MLK_E_CORRUPT or
 * -ENOMEM. */
int mlk_heap_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_heap_room *room,
		    struct mlk_heap *heap);

/* Free what @room has. */
void mlk_heap_room_release(struct mlk_heap_room *room);

#endif
