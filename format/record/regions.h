/* regions.h - REGIONS chunks, doc/trace-format.md 4.15 */
#ifndef MLK_RECORD_REGIONS_H
#define MLK_RECORD_REGIONS_H

#include "format/chunk/codec.h"
#include "format/record/arena.h"
#include "format/regions.h"

/* Append @regions to @e: as many mappings as there is room for in a chunk; what follows them counts
 * as left out.  Returns 0 or -EINVAL: they are not in order. */
int mlk_regions_encode(struct mlk_enc *e, const struct mlk_regions *regions);

/* Read one from @d.  The mappings are in *@room, which grows, and which the caller frees in the
 * end; strings in @text.  Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_regions_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping **room,
		       struct mlk_regions *regions);

#endif
