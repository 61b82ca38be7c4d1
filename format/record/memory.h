/* memory.h - MEMORY chunks, doc/trace-format.md 4.13 */
#ifndef MLK_RECORD_MEMORY_H
#define MLK_RECORD_MEMORY_H

#include "format/chunk/codec.h"
#include "format/reader.h"

/* What samples of a chunk are written as differences to: all zero at its beginning. */
struct mlk_memory_state {
	uint64_t time_ns;
	uint64_t value[64]; /* by bit of the mask, those that are not known, too */
};

/* Append @sample to @e.  What is not known of it is not read. */
void mlk_memory_encode(struct mlk_enc *e, struct mlk_memory_state *before,
		       const struct mlk_memory *sample);

/* Read the next sample from @d.  Returns 0 or MLK_E_CORRUPT. */
int mlk_decode_memory(struct mlk_dec *d, struct mlk_memory_state *before,
		      struct mlk_memory *sample);

#endif
