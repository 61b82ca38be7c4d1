/* predict.h - guesses of the word that comes next, doc/trace-format.md 4.4.2
 *
 * Writer and reader keep the same tables, and change them by the same rules, from the beginning of
 * each chunk: a word that was guessed takes one byte, and zstd finds runs of such bytes.
 */
#ifndef MLK_PREDICT_H
#define MLK_PREDICT_H

#include <stdint.h>
#include <string.h>

#define MLK_GUESS_BITS 16
#define MLK_SHOWN_BITS 13

#define MLK_RECENT	120 /* words that are known by when they came */
#define MLK_RECENT_ROOM 128 /* a power of two that is greater */

/* The place of a word: register r is r; of a stack, words are counted from its lowest on.  Behind
 * MLK_PLACE_GAP there are distances, in words, from the word that was told before it. */
enum { MLK_PLACE_STACK = 64, MLK_PLACE_TOP = 16384, MLK_PLACE_GAP = 32768 };

/* All that guesses are made of. */
struct mlk_predict {
	uint64_t beside[1 << MLK_GUESS_BITS]; /* by place and the word before */
	uint64_t place[1 << MLK_GUESS_BITS];  /* by place and pc */
	uint64_t shown[1 << MLK_SHOWN_BITS];  /* words of the top, by their address */
	uint64_t before;		      /* the word before */
	uint64_t pc;			      /* last register of the last ALLOC with registers */
	/* Words of registers and tops and addresses of records, in turn; nr counts all that came.
	 */
	uint64_t recent[MLK_RECENT_ROOM];
	uint32_t nr_recent;
};

/* Where the guesses are for one word, which is put there in their place. */
struct mlk_guess {
	uint64_t *beside, *place;
};

/* Forget all, as at the beginning of a chunk. */
static inline void mlk_predict_reset(struct mlk_predict *p)
{
	memset(p, 0, sizeof(*p));
}

/* @word came.  It is 0 for none, and then nothing changes that can be asked for. */
static inline void mlk_predict_came(struct mlk_predict *p, uint64_t word)
{
	p->recent[p->nr_recent % MLK_RECENT_ROOM] = word;
	p->nr_recent += word != 0;
}

/* The word that came @ago words before the last one; 0 before the first. */
static inline uint64_t mlk_predict_recent(const struct mlk_predict *p, uint64_t ago)
{
	return p->recent[(p->nr_recent - 1 - ago) % MLK_RECENT_ROOM];
}

/* A hash; entries are found by its high bits. */
static inline uint64_t mlk_predict_hash(uint64_t a, uint64_t b)
{
	return (a * 0x9e3779b97f4a7c15u ^ b) * 0xbf58476d1ce4e5b9u;
}

/* What is guessed for @place behind the word @before, and by @pc.  @gap is the place in its stead
 * for the first of both: in coding 4 it is another one for words of stacks, as frames move. */
static inline struct mlk_guess mlk_predict_by(struct mlk_predict *p, uint64_t gap, uint64_t place,
					      uint64_t before, uint64_t pc)
{
	const unsigned int shift = 64 - MLK_GUESS_BITS;

	return (struct mlk_guess){&p->beside[mlk_predict_hash(gap, before) >> shift],
				  &p->place[mlk_predict_hash(place, pc) >> shift]};
}

/* What the top of a stack held last at the address @at, or at another of the same hash. */
static inline uint64_t *mlk_predict_shown(struct mlk_predict *p, uint64_t at)
{
	return &p->shown[mlk_predict_hash(at / 8, 0) >> (64 - MLK_SHOWN_BITS)];
}

#endif
