/* beside.h - chunks of events that are not in EVENTS: STACKS and OVERRUNS, doc/trace-format.md 4.9
 * and 4.10 */
#ifndef MLK_BESIDE_H
#define MLK_BESIDE_H

#include "format/chunk/chunk.h"
#include "format/event/events.h"

/* A chunk being filled; all zero: none is. */
struct mlk_beside {
	struct mlk_encoder *events; /* NULL: none is; most recordings have one chunk at most */
	struct mlk_enc heads;	    /* of OVERRUNS */
	struct mlk_chunk header;
};

/* Append to a STACKS chunk @event, or to an OVERRUNS chunk @overrun, whose event it is; the stack
 * is kept as @filter says.  Returns 0, -EINVAL (nothing was appended) or -ENOMEM (the chunk is
 * lost).
 */
int mlk_beside_add(struct mlk_beside *b, const struct mlk_filter *filter,
		   const struct mlk_event *event, const struct mlk_overrun *overrun);

/* Is it time for a new chunk? */
bool mlk_beside_full(const struct mlk_beside *b);

/* Append the chunk's payload to @payload, whose failed is set if memory runs out, set type, times
 * and number of records of @header, and begin anew.  False: there is no chunk. */
bool mlk_beside_take(struct mlk_beside *b, struct mlk_chunk *header, struct mlk_enc *payload);

/* Forget what was appended, and its memory. */
void mlk_beside_release(struct mlk_beside *b);

/* Divide the payload of OVERRUNS in @d: the part before the events into @heads, the events are
 * left. */
void mlk_overruns_heads(struct mlk_dec *d, struct mlk_dec *heads);

/* Read the next head into all of @overrun but its event.  Returns 0 or MLK_E_CORRUPT. */
int mlk_decode_overrun(struct mlk_dec *heads, struct mlk_overrun *overrun);

#endif
