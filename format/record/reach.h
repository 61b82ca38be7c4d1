/* reach.h - POINTERS and PASS chunks, doc/trace-format.md 4.17 and 4.18 */
#ifndef MLK_RECORD_REACH_H
#define MLK_RECORD_REACH_H

#include "format/chunk/codec.h"
#include "format/reach.h"
#include "format/record/arena.h"

/* Memory for what a reader lends out; all zero: none. */
struct mlk_reach_room {
	struct mlk_pointer *words;
	struct mlk_range *ranges;
	struct mlk_reach_thread *threads;
	struct mlk_root *roots;
};

/* Append to @e.  Returns 0 or -EINVAL: too many, or not in order. */
int mlk_pointers_encode(struct mlk_enc *e, const struct mlk_pointers *pointers);
int mlk_pass_encode(struct mlk_enc *e, const struct mlk_pass *pass);

/* Read one from @d; what it points to lies in @room, strings in @text.  Returns 0, MLK_E_CORRUPT or
 * -ENOMEM. */
int mlk_pointers_decode(struct mlk_dec *d, struct mlk_reach_room *room,
			struct mlk_pointers *pointers);
int mlk_pass_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_reach_room *room,
		    struct mlk_pass *pass);

/* Free what @room has. */
void mlk_reach_room_release(struct mlk_reach_room *room);

#endif
