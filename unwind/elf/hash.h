/* hash.h - one hash for all tables, which the author of a trace cannot predict */
#ifndef DWUNW_HASH_H
#define DWUNW_HASH_H

#include <stdint.h>

/* Random numbers of one struct dwunw. */
struct dwunw_seed {
	uint64_t word[2];
};

/* Draw a seed; @address (of anything) must do where there are no random numbers. */
void dwunw_seed_draw(struct dwunw_seed *seed, const void *address);

/* Both halves of a product: the low one alone would keep multiples of a power of two together. */
static inline uint64_t dwunw_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Mixed twice, so that one seed is as good as another. */
static inline uint64_t dwunw_hash(const struct dwunw_seed *seed, uint64_t a, uint64_t b)
{
	return dwunw_fold(dwunw_fold(a ^ seed->word[0], seed->word[1] | 1) ^ b,
			  0x9e3779b97f4a7c15u);
}

/* The hash of a pc, for the hot loop: mixed once only. */
static inline uint64_t dwunw_hash_pc(const struct dwunw_seed *seed, uint64_t pc, uint32_t as)
{
	return dwunw_fold(pc ^ seed->word[0], (seed->word[1] ^ as) | 1);
}

#endif
