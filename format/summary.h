/* summary.h - the events of a trace whose registers and stacks were dropped, for one chunk
 *
 * Where addresses are of no use any more, blocks have numbers in their place.  A number has bit 63
 * set, a group in the bits below, and the block's place in its group in the lowest bits.  All
 * blocks of a group have the same stack, function, flags and size.
 */
#ifndef MLK_SUMMARY_EVENTS_H
#define MLK_SUMMARY_EVENTS_H

#include "format/trace.h"

#define MLK_PLACE_BITS	24 /* of a number: the place in the group */
#define MLK_NUMBER_FLAG (1ull << 63)

/* The number of the block at @place, less than 2^MLK_PLACE_BITS, of @group, less than 2^39. */
static inline uint64_t mlk_block_number(uint64_t group, uint64_t place)
{
	return MLK_NUMBER_FLAG | group << MLK_PLACE_BITS | place;
}

struct mlk_summary; /* opaque: the events of a chunk that is being filled; one thread at a time */

/* For events whose times since @start_ns are rounded to multiples of @unit nanoseconds, at least 1.
 * *@out is released with mlk_summary_free(); NULL on failure.  Returns 0 or -ENOMEM. */
int mlk_summary_new(struct mlk_summary **out, uint64_t start_ns, uint64_t unit);

/* Append the head of @event, and of an ALLOC the number @stack (from 1 on) that its stack has among
 * those of the chunk; else @stack is 0.  Returns 0, -EINVAL (there is no such event; nothing was
 * appended) or -ENOMEM (the chunk is lost). */
int mlk_summary_add(struct mlk_summary *summary, const struct mlk_event *event, uint32_t stack);

/* How many events were appended, and the bytes that they take before compression. */
size_t mlk_summary_events(const struct mlk_summary *summary);
size_t mlk_summary_bytes(const struct mlk_summary *summary);

/* Begin another chunk: forget all events. */
void mlk_summary_clear(struct mlk_summary *summary);

/* Release @summary; NULL is allowed. */
void mlk_summary_free(struct mlk_summary *summary);

#endif
