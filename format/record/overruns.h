/* overruns.h - the payload of an OVERRUNS chunk, doc/trace-format.md 4.10: encoder and decoder */
#ifndef MLK_OVERRUNS_H
#define MLK_OVERRUNS_H

#include "format/chunk/chunk.h"
#include "format/event/events.h"

/* A chunk being filled; all zero: none is. */
struct mlk_overruns_out {
	struct mlk_encoder *events; /* NULL: none is */
	struct mlk_enc heads;
	struct mlk_chunk header;
};

/* Append @overrun, whose stack is kept as @filter says.  Returns 0, -EINVAL (nothing was appended)
 * or -ENOMEM (the chunk is lost). */
int mlk_overruns_out_add(struct mlk_overruns_out *o, const struct mlk_filter *filter,
			 const struct mlk_overrun *overrun);

/* Is it time for a new chunk? */
bool mlk_overruns_out_full(const struct mlk_overruns_out *o);

/* Append the chunk's payload to @payload, whose failed is set if memory runs out, set type, times
 * and number of records of @header, and begin anew.  False: there is no chunk. */
bool mlk_overruns_out_take(struct mlk_overruns_out *o, struct mlk_chunk *header,
			   struct mlk_enc *payload);

void mlk_overruns_out_release(struct mlk_overruns_out *o);

/* Divide the payload in @d: the part before the events into @heads, the events are left. */
void mlk_overruns_heads(struct mlk_dec *d, struct mlk_dec *heads);

/* Read the next head into all of @overrun but its event.  Returns 0 or MLK_E_CORRUPT. */
int mlk_decode_overrun(struct mlk_dec *heads, struct mlk_overrun *overrun);

#endif
