/* block_digest.h - blocks of a stack that have long been as they were: only the stack is read, not
 * what is remembered of it
 *
 * Such a block is mixed down, with those above it up to the next multiple of QUIET_SPAN or the top,
 * and the result compared with that of the image.  Mixing takes a load and an AES round for 32
 * bytes, comparing with the image takes two loads, and processors do two of either in a clock.
 *
 * The 16 bytes at the same place modulo 256 are a chain: a round of what there is, and the next
 * ones below are added (xor).  All sixteen chains are kept whole, and all their steps can be
 * undone: so one word that changes always changes the result.  Where several of a chain change, for
 * whatever has become of the upper ones exactly one of the 2^128 changes that the next can have
 * cancels it.  That and the one above are of five bytes together at least (so one of a byte or two
 * is never cancelled by another such), go through a table that knows no arithmetic, and each byte
 * of the one above may come out as any of 127, depending on what is further up in the chain.
 * Programs' words do not change like that but by chance, once in 2^32 times or less that two of a
 * chain change at once in blocks that were at rest for QUIET_SEEN events.
 */
#ifndef LIBPRELOAD_BLOCK_DIGEST_H
#define LIBPRELOAD_BLOCK_DIGEST_H

#include <immintrin.h>

#include "record/libpreload/preload.h"

#define QUIET_SPAN 4096u

/* What preload_known.quiet says of a block: how often it was found as it was since it was written
 * to, up to QUIET_SEEN, when it is examined.  Of mixed ones all above in their span are, too. */
enum { QUIET_SEEN = 32, QUIET_ZERO, QUIET_MIXED };

#define QUIET_TARGET __attribute__((target("avx2,vaes"), always_inline)) static inline

#define QUIET_PAIR(i) (2 * (i) + 1) * 0x9e3779b97f4a7c15, (2 * (i) + 2) * 0x9e3779b97f4a7c15

/* What each chain begins with. */
static const uint64_t quiet_start[PRELOAD_MIXED / 8] __attribute__((aligned(32))) = {
	QUIET_PAIR(0),	QUIET_PAIR(1),	QUIET_PAIR(2),	QUIET_PAIR(3),
	QUIET_PAIR(4),	QUIET_PAIR(5),	QUIET_PAIR(6),	QUIET_PAIR(7),
	QUIET_PAIR(8),	QUIET_PAIR(9),	QUIET_PAIR(10), QUIET_PAIR(11),
	QUIET_PAIR(12), QUIET_PAIR(13), QUIET_PAIR(14), QUIET_PAIR(15),
};

/* The number of the block at @addr in what is remembered. */
static inline uint32_t block_digest(uint64_t addr)
{
	return (addr & (PRELOAD_WINDOW - 1)) / PRELOAD_BLOCK;
}

/* Add @x, a block, to @m. */
QUIET_TARGET void block_digest_add(__m256i m[8], const __m256i *x)
{
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		m[i] = _mm256_aesenc_epi128(m[i], x[8 + i]);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		m[i] = _mm256_aesenc_epi128(m[i], x[i]);
}

/* Set the chains @m to the PRELOAD_MIXED bytes at @from, which is aligned to 32. */
QUIET_TARGET void block_digest_load(__m256i m[8], const void *from)
{
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		m[i] = ((const __m256i *)from)[i];
}

/* Is the stack [@a, @b), mixed blocks up to where a span or the stack ends, as it was? */
QUIET_TARGET bool block_digest_same(const struct preload_known *k, uint64_t a, uint64_t b)
{
	const __m256i *was = (const __m256i *)k->mixed[block_digest(a)];
	__m256i m[8], d;

	block_digest_load(m, quiet_start);
	do {
		b -= PRELOAD_BLOCK;
		block_digest_add(m, (const __m256i *)b);
	} while (b > a);
	d = _mm256_xor_si256(m[0], was[0]);
#pragma GCC unroll 8
	for (int i = 1; i < 8; i++)
		d = _mm256_or_si256(d, _mm256_xor_si256(m[i], was[i]));
	return _mm256_testz_si256(d, d);
}

/* The block at @a, which is as it was, is mixed from now on; all above it up to @b, where its span
 * or the stack ends, are. */
__attribute__((target("avx2,vaes"))) static inline void block_digest_mix(struct preload_known *k,
									 uint64_t a, uint64_t b)
{
	uint32_t i = block_digest(a);
	bool first = a + PRELOAD_BLOCK == b;
	__m256i m[8];

	block_digest_load(m, first ? (const void *)quiet_start : k->mixed[i + 1]);
	block_digest_add(m, (const __m256i *)(k->bytes + i * PRELOAD_BLOCK));
#pragma GCC unroll 8
	for (int n = 0; n < 8; n++)
		((__m256i *)k->mixed[i])[n] = m[n];
	k->quiet[i] = QUIET_MIXED;
}

/* Block @i is to be written to, or what lies above it in its span is no longer the same. */
static inline void block_digest_end(struct preload_known *k, uint32_t i)
{
	const uint32_t mask = QUIET_SPAN / PRELOAD_BLOCK - 1;

	if (k->quiet[i] == QUIET_MIXED)
		for (uint32_t n = i; k->quiet[n] == QUIET_MIXED; n--) {
			k->quiet[n] = QUIET_SEEN;
			if (!(n & mask))
				break;
		}
	k->quiet[i] = 0;
}

/* Mixing begins below @top, a multiple of a block, from now on. */
static inline void block_digest_set_top(struct preload_known *k, uint64_t top)
{
	if (k->top)
		block_digest_end(k, block_digest(k->top - 1));
	k->top = top;
	block_digest_end(k, block_digest(top - 1));
}

#endif
