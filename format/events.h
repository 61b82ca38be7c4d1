/* events.h - the payload of an EVENTS chunk, doc/trace-format.md 4.4: encoder and decoder */
#ifndef MLK_EVENTS_H
#define MLK_EVENTS_H

#include "format/codec.h"
#include "format/image.h"

/* What both sides know of a thread, from the beginning of the chunk. */
struct mlk_stream {
	uint32_t tgid, tid;
	uint64_t regs[MLK_MAX_REGS];
	struct mlk_image image;
};

/* The state of one chunk. */
struct mlk_coder {
	uint64_t time_ns, addr, alloc_id; /* of the record before */
	struct mlk_stream *streams; /* by thread number - 1; those past nr keep their memory */
	size_t nr, room;
	uint32_t *slots; /* encoder only: open-addressing table of thread numbers, 0 = free */
	size_t nr_slots; /* a power of two */
};

/* Begin a chunk whose header's first time is @first_ns. */
void mlk_coder_begin(struct mlk_coder *c, uint64_t first_ns);
void mlk_coder_release(struct mlk_coder *c);

/* New thread number for (@tgid, @tid), from 1; 0 when out of memory.  Not for use outside
 * events_*.c. */
size_t mlk_coder_add(struct mlk_coder *c, uint32_t tgid, uint32_t tid);

/* Append @event to @e.  Returns 0, -EINVAL or -ENOMEM (@e is then unusable). */
int mlk_events_encode(struct mlk_coder *c, struct mlk_enc *e, const struct mlk_event *event);

/* Read the next record; the stack goes to @stack, which has room for MLK_MAX_STACK bytes.
 * Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_events_decode(struct mlk_coder *c, struct mlk_dec *d, struct mlk_event *event,
		      uint8_t *stack);

/* First byte of the block of [@at, ...) that follows, or @end: stacks are cut at multiples of 128.
 */
static inline uint64_t mlk_block_end(uint64_t at, uint64_t end)
{
	uint64_t next = (at | (MLK_BLOCK - 1)) + 1;

	return next < end ? next : end;
}

enum { MLK_HEAD_KIND = 0x1f, MLK_HEAD_NESTED = 0x20 };

#endif
