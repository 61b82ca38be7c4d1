/* smaps.h - SMAPS chunks, doc/trace-format.md 4.22 */
#ifndef MLK_RECORD_SMAPS_H
#define MLK_RECORD_SMAPS_H

#include "format/chunk/codec.h"
#include "format/record/arena.h"
#include "format/smaps.h"

/* Memory for what a reader lends out; all zero: none. */
struct mlk_smaps_room {
	struct mlk_page_run *pages;
	size_t room;
};

/* Append to @e.  Returns 0 or -EINVAL: not in order, or too long a path. */
int mlk_smaps_encode(struct mlk_enc *e, const struct mlk_smaps *smaps);

/* Read one from @d; what it points to lies in @room, strings in @text.  Its time is not set.
 * Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_decode_smaps(struct mlk_dec *d, struct mlk_arena *text, struct mlk_smaps_room *room,
		     struct mlk_smaps *smaps);

/* Free what @room has. */
void mlk_smaps_room_release(struct mlk_smaps_room *room);

#endif
