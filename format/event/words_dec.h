/* words_dec.h - the words of a column, doc/trace-format.md 4.4.2: the innermost loop of all reading
 *
 * A stack takes some dozens of words.  So the position in the column, and what is the same for all
 * words of a stack's part, are in variables, which a compiler keeps in registers.
 */
#ifndef MLK_WORDS_DEC_H
#define MLK_WORDS_DEC_H

#include "format/event/events.h"

struct mlk_words {
	enum mlk_column column;
	const uint8_t *at, *end;
	const uint64_t *known; /* the dictionary */
	size_t nr_known;
	uint64_t before, pc; /* as in struct mlk_predict */
};

static inline struct mlk_words mlk_words_begin(const struct mlk_decoder *c, enum mlk_column column)
{
	return (struct mlk_words){
		.column = column,
		.at = c->columns[column].at,
		.end = c->columns[column].end,
		.known = c->words,
		.nr_known = c->nr_words,
		.before = c->predict.before,
		.pc = c->predict.pc,
	};
}

static inline void mlk_words_end(struct mlk_decoder *c, const struct mlk_words *w)
{
	c->columns[w->column].at = w->at;
	c->predict.before = w->before;
}

/* mlk_dec_uvar(), for what takes at most four bytes without a branch for each. */
static inline uint64_t mlk_words_number(struct mlk_decoder *c, struct mlk_words *w)
{
	struct mlk_dec *d = &c->columns[w->column];
	uint32_t bytes, ends;
	uint64_t number;

	if (__builtin_expect(w->end - w->at >= 4, 1)) {
		bytes = mlk_get_u32(w->at);
		if (!(bytes & 0x80)) {
			w->at++;
			return bytes & 0x7f;
		}
		ends = ~bytes & 0x80808080;
		if (__builtin_expect(ends != 0, 1)) {
			w->at += __builtin_ctz(ends) / 8 + 1;
			bytes &= ends ^ (ends - 1);
			return (bytes & 0x7f) | (bytes >> 1 & 0x3f80) | (bytes >> 2 & 0x1fc000) |
			       (bytes >> 3 & 0xfe00000);
		}
	}
	d->at = w->at;
	number = mlk_dec_uvar(d);
	w->at = d->at;
	return number;
}

/* The next word of the column, whose place is @place; see encode_word().  0, MLK_E_CORRUPT or
 * -ENOMEM. */
static inline int mlk_words_next(struct mlk_decoder *c, struct mlk_words *w, uint64_t place,
				 uint64_t *word)
{
	const struct mlk_guess guess = mlk_predict_by(&c->predict, place, w->before, w->pc);
	const uint64_t number = mlk_words_number(c, w), beside = *guess.beside;

	if (__builtin_expect(number >= w->nr_known, 0))
		return MLK_E_CORRUPT;
	*word = w->known[number];
	if (number == MLK_WORD_PLACE)
		*word = *guess.place;
	if (number == MLK_WORD_BESIDE)
		*word = beside;
	if (__builtin_expect(number == MLK_WORD_NEW, 0)) {
		int err = mlk_decode_new_word(c, word);

		if (err)
			return err;
		w->known = c->words;
		w->nr_known = c->nr_words;
	}
	*guess.beside = *guess.place = w->before = *word;
	return 0;
}

#endif
