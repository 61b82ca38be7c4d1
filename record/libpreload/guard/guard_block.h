/* guard_block.h - what is around a guarded block
 *
 *   front      head  canary  the block as the program asked for it  canary
 *   (aligned)  16    16                                            32 to 47
 *
 * The bytes of the canaries depend on the block's address, so that one copied onto another is
 * noticed; none of them is ASCII or NUL.
 */
#ifndef LIBPRELOAD_GUARD_BLOCK_H
#define LIBPRELOAD_GUARD_BLOCK_H

#include <string.h>

#include "record/libpreload/guard/guard.h"

#define GUARD_CANARY 16u	  /* bytes before a block */
#define GUARD_BEHIND 32u	  /* and behind it, at least */
#define GUARD_TOLD   (1ull << 63) /* in a head's size: its damage is known */

/* Before the canary before a block. */
struct head {
	uint64_t size;	/* bytes requested */
	uint32_t front; /* bytes from where the allocator's block begins to the program's */
	uint32_t check; /* of both, and of the address */
};

#define GUARD_FRONT ((size_t)sizeof(struct head) + GUARD_CANARY)

/* What guard_begin() was given. */
extern uint64_t guard_secret;

/* Is a walk looking at @block now?  Not in the thread that walks. */
bool guard_is_looked_at(const uint8_t *block);

/* @n, or the next multiple of @to, a power of two. */
static inline size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* A number in which each bit depends on many of @x. */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

/* The contents of each aligned word of the canaries. */
static inline uint64_t canary_of(const uint8_t *block)
{
	return mix((uint64_t)block ^ guard_secret) | 0x8080808080808080ull;
}

/* The byte of the canary at @at. */
static inline uint8_t canary_at(uint64_t canary, const uint8_t *at)
{
	return (uint8_t)(canary >> 8 * ((uint64_t)at & 7));
}

/* The canary as eight bytes from @at on. */
static inline uint64_t canary_from(uint64_t canary, const uint8_t *at)
{
	unsigned int by = 8 * ((uint64_t)at & 7);

	return canary >> by | canary << (-by & 63);
}

/* Write it to [@at, @to). */
static inline void write_canary(uint64_t canary, uint8_t *at, const uint8_t *to)
{
	uint64_t eight = canary_from(canary, at);

	for (; to - at >= 8; at += 8)
		memcpy(at, &eight, 8);
	for (; at < to; at++)
		*at = canary_at(canary, at);
}

/* Is all of [@at, @to) as it was written? */
static inline bool has_canary(uint64_t canary, const uint8_t *at, const uint8_t *to)
{
	uint64_t expected = canary_from(canary, at), eight;

	for (; to - at >= 8; at += 8) {
		memcpy(&eight, at, 8);
		if (eight != expected)
			return false;
	}
	for (; at < to; at++)
		if (*at != canary_at(canary, at))
			return false;
	return true;
}

/* The head of @block, which is ours. */
static inline struct head *head_of(const uint8_t *block)
{
	return (struct head *)(uintptr_t)(block - GUARD_FRONT);
}

/* What the check in @h, the head of @block, ought to be. */
static inline uint32_t check_of(const uint8_t *block, const struct head *h)
{
	uint64_t size = h->size & ~GUARD_TOLD;

	return (uint32_t)(mix(mix((uint64_t)block ^ ~guard_secret) ^ size ^
			      (uint64_t)h->front << 48) >>
			  32);
}

/* Is the head of @block as it was written? */
static inline bool is_whole(const uint8_t *block)
{
	return head_of(block)->check == check_of(block, head_of(block));
}

/* Where the canary behind a block of @size ends. */
static inline const uint8_t *end_of(const uint8_t *block, size_t size)
{
	return block + round_up(size + GUARD_BEHIND, 16);
}

#endif
