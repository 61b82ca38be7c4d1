/* block_numbers.h - numbers in place of blocks' addresses, which make a trace large
 *
 * A number means to the replay what the address meant: the same blocks are found by frees and
 * reallocs, and the same are not.  Where the address itself says something, it stays: of mappings,
 * and of what takes the place of a block from before the recording.  Only where a program frees or
 * reallocates a block in the middle of its realloc, what is known of older blocks may differ.
 */
#ifndef REPORT_BLOCK_NUMBERS_H
#define REPORT_BLOCK_NUMBERS_H

#include "format/trace.h"

struct block_numbers; /* opaque */

/* No blocks yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int block_numbers_new(struct block_numbers **out);

/* Put the number that its block has in place of the address of @event, the next of the trace; of an
 * ALLOC @stack is its stack, the same number in the whole trace.  Returns 0 or -ENOMEM. */
int block_numbers_apply(struct block_numbers *numbers, struct mlk_event *event, uint32_t stack);

/* Release @numbers; NULL is allowed. */
void block_numbers_free(struct block_numbers *numbers);

#endif
