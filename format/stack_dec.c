/* stack_dec.c - columns to registers and stacks; nothing here is believed before it is checked */
#include <errno.h>
#include <stdlib.h>

#include "format/events.h"

struct range {
	uint64_t lo, hi;
};

static uint64_t align_down(uint64_t at)
{
	return at & ~(uint64_t)(MLK_WORD - 1);
}

/* A word by its number @number - @first in the dictionary, or the new one. */
static inline int decode_numbered(struct mlk_decoder *c, uint64_t number, unsigned int first,
				  uint64_t *word)
{
	if (number != MLK_WORD_NEW) {
		if (number - first >= c->nr_words)
			return MLK_E_CORRUPT;
		*word = c->words[number - first];
		return 0;
	}
	*word = c->new_word = mlk_dec_delta(&c->columns[MLK_COL_NEW], c->new_word);
	return mlk_append(&c->words, &c->nr_words, &c->room_words, *word);
}

/* The next word of @column, which stands at @place; see encode_word(). */
static inline int decode_word(struct mlk_decoder *c, enum mlk_column column, uint64_t place,
			      uint64_t *word)
{
	struct mlk_guess guess;
	uint64_t number, beside, by_place;
	int err = 0;

	*word = 0;
	if (__builtin_expect(c->coding == MLK_CODING_0, 0)) {
		number = mlk_dec_uvar(&c->columns[MLK_COL_WORDS]);
		return number == MLK_WORD_ZERO ? 0
					       : decode_numbered(c, number, MLK_WORD_FIRST_0, word);
	}
	guess = mlk_predict_at(&c->predict, place);
	number = mlk_dec_uvar(&c->columns[column]);
	beside = *guess.beside;
	by_place = *guess.place;
	/* Which guess it is, nobody can predict: so both are loaded, and one is chosen without a
	 * branch. */
	*word = number == MLK_WORD_BESIDE ? beside : 0;
	*word = number == MLK_WORD_PLACE ? by_place : *word;
	if (number == MLK_WORD_NEW || number >= MLK_WORD_FIRST)
		err = decode_numbered(c, number, MLK_WORD_FIRST, word);
	mlk_predict_learn(&c->predict, guess, *word);
	return err;
}

static int decode_regs(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	struct mlk_dec *d = &c->columns[MLK_COL_REGS];
	uint64_t mask;
	int err = 0;

	ev->nr_regs = mlk_dec_u8(d);
	if (ev->nr_regs <= MLK_SP_REG || ev->nr_regs > MLK_MAX_REGS)
		return MLK_E_CORRUPT;
	s->regs[MLK_SP_REG] = mlk_dec_delta(d, s->regs[MLK_SP_REG]);
	mask = mlk_dec_uvar_max(d, (1ull << ev->nr_regs) - 1);
	if (mask >> MLK_SP_REG & 1)
		return MLK_E_CORRUPT;
	for (; !err && mask; mask &= mask - 1) {
		unsigned int r = (unsigned int)__builtin_ctzll(mask);

		err = decode_word(c, MLK_COL_REG_WORDS, r, &s->regs[r]);
	}
	c->predict.pc = s->regs[ev->nr_regs - 1];
	memcpy(ev->regs, s->regs, ev->nr_regs * sizeof(*ev->regs));
	return err;
}

/* Read the listed words of the slice [@at, @end). */
static int decode_slice(struct mlk_decoder *c, struct mlk_image *im, uint64_t at, uint64_t end)
{
	unsigned int mask = mlk_dec_u16(&c->columns[MLK_COL_MASKS]);
	uint64_t base = at & ~(uint64_t)(MLK_BLOCK - 1), word;
	int err = 0;

	for (; !err && mask; mask &= mask - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(mask);

		if (base + i * MLK_WORD < at || base + i * MLK_WORD >= end)
			return MLK_E_CORRUPT;
		err = decode_word(c, MLK_COL_WORDS,
				  MLK_PLACE_STACK + (base + i * MLK_WORD - c->lo) / MLK_WORD,
				  &word);
		mlk_image_set(im, base + i * MLK_WORD, word);
		c->changed_to = base + i * MLK_WORD + MLK_WORD;
	}
	return err;
}

/* Go through the listed slices of [@lo, @hi). */
static int decode_slices(struct mlk_decoder *c, struct mlk_image *im, uint64_t lo, uint64_t hi)
{
	const uint64_t most = MLK_MAX_STACK / MLK_BLOCK + 2;
	struct mlk_dec *d = &c->columns[MLK_COL_STACK];
	uint64_t listed = mlk_dec_uvar_max(d, most);
	uint64_t first = lo & ~(uint64_t)(MLK_BLOCK - 1), offset = 0;
	int err = 0;

	/* Offsets, for addresses may wrap at the top of the address space. */
	for (; listed && !err; listed--) {
		uint64_t at;

		offset += mlk_dec_uvar_max(d, most) * MLK_BLOCK;
		if (d->bad || offset >= hi - first)
			return MLK_E_CORRUPT;
		at = offset ? first + offset : lo;
		err = decode_slice(c, im, at, mlk_slice_end(at, hi));
		offset += MLK_BLOCK;
	}
	return d->bad ? MLK_E_CORRUPT : err;
}

/* The word of the top at @at, of which the image has nothing. */
static int decode_top_word(struct mlk_decoder *c, uint64_t at, bool listed, uint64_t *word)
{
	uint64_t *shown;
	int err = 0;

	if (c->coding == MLK_CODING_0) {
		*word = mlk_dec_u64(&c->columns[MLK_COL_TOP]);
		return 0;
	}
	shown = mlk_predict_shown(&c->predict, at);
	if (listed)
		err = decode_word(c, MLK_COL_TOP_WORDS, MLK_PLACE_TOP + (at - c->lo) / MLK_WORD,
				  shown);
	*word = *shown;
	return err;
}

/* Lay slice 0, as it was, over the image; mlk_decode_uncover() takes it off again. */
static int cover(struct mlk_decoder *c, struct mlk_stream *s, uint64_t hi)
{
	uint64_t end = mlk_top_end(c->lo, hi), at = c->lo, word;
	bool first_coding = c->coding == MLK_CODING_0;
	uint32_t mask = first_coding ? 0 : mlk_dec_u16(&c->columns[MLK_COL_TOP]), empty = 0;
	unsigned int nr = (unsigned int)((end - at) / MLK_WORD);
	int err = 0;

	for (unsigned int i = 0; i < nr; i++)
		empty |= (uint32_t)!mlk_image_word(&s->image, at + i * MLK_WORD) << i;
	if (mask & ~empty)
		return MLK_E_CORRUPT;
	c->covered = s;
	c->nr_under = nr;
	c->empty = empty;
	for (uint32_t left = first_coding ? (1u << nr) - 1 : empty; left && !err;
	     left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);

		err = decode_top_word(c, at + i * MLK_WORD, mask >> i & 1, &word);
		if (empty >> i & 1)
			mlk_image_set(&s->image, at + i * MLK_WORD, word);
	}
	return err;
}

void mlk_decode_uncover(struct mlk_decoder *c)
{
	struct mlk_stream *s = c->covered;
	uint64_t lo;

	if (!s)
		return;
	lo = align_down(s->regs[MLK_SP_REG]);
	for (uint32_t left = c->empty; left; left &= left - 1)
		mlk_image_set(&s->image, lo + (unsigned int)__builtin_ctz(left) * MLK_WORD, 0);
	c->covered = NULL;
}

/* The word of @s's last stack, before this event, at @at where no word was listed for this one. */
static uint64_t word_before(const struct mlk_decoder *c, const struct mlk_stream *s, uint64_t at,
			    const struct range *before)
{
	uint64_t before_lo = align_down(before->lo), lo = align_down(s->regs[MLK_SP_REG]);

	if (c->mode != MLK_STACK_FILTERED)
		return mlk_image_word(&s->image, at);
	if (at - before_lo < mlk_top_end(before_lo, before->hi) - before_lo)
		return le64toh(s->top[(at - before_lo) / MLK_WORD]);
	if (at - lo < c->nr_under * MLK_WORD && c->empty >> (at - lo) / MLK_WORD & 1)
		return 0;
	return mlk_image_word(&s->image, at);
}

/*
 * See mlk_event.stack_same_from; @before is where the thread's last stack stood.  Above both tops
 * the stacks are those of the image, in which nothing but the listed words changed.
 */
static uint64_t same_from(const struct mlk_decoder *c, const struct mlk_stream *s,
			  const struct range *before)
{
	uint64_t sp = s->regs[MLK_SP_REG], hi = s->end;
	uint64_t least = sp > before->lo ? sp : before->lo, lo = align_down(least);
	uint64_t at = mlk_top_end(lo, hi), from = c->changed_to > lo ? c->changed_to : lo;

	if (before->lo >= before->hi || before->hi != hi || lo >= hi)
		return UINT64_MAX;
	while (at > from &&
	       word_before(c, s, at - MLK_WORD, before) == mlk_image_word(&s->image, at - MLK_WORD))
		at -= MLK_WORD;
	if (at > from)
		from = at;
	if (from >= hi)
		return UINT64_MAX;
	return from > least ? from : least;
}

/* Keep what was given out of slice 0, for the next event to be compared with. */
static void keep_top(const struct mlk_decoder *c, struct mlk_stream *s)
{
	uint64_t lo = align_down(s->regs[MLK_SP_REG]);

	if (c->nr_under)
		memcpy(s->top, mlk_image_at(&s->image, lo), c->nr_under * MLK_WORD);
}

/* Change the image to @s's stack [c->lo, s->end), and say in *@kept whether it holds still what it
 * held. */
static int decode_image(struct mlk_decoder *c, struct mlk_stream *s, bool *kept)
{
	uint64_t before = s->image.hi - s->image.lo;
	int err = mlk_image_extend(&s->image, c->lo, s->end);

	if (err < 0)
		return err;
	*kept = err;
	c->held += s->image.hi - s->image.lo - before;
	/* More than any writer holds: this is to exhaust our memory. */
	if (c->held > MLK_MAX_HELD)
		return MLK_E_CORRUPT;
	err = decode_slices(c, &s->image, c->lo, s->end);
	return !err && c->mode == MLK_STACK_FILTERED ? cover(c, s, s->end) : err;
}

/* @sp_before is the stack pointer of the thread's last event. */
static int decode_bytes(struct mlk_decoder *c, struct mlk_stream *s, uint64_t sp_before,
			struct mlk_event *ev)
{
	const struct range before = {sp_before, s->end};
	uint64_t sp = s->regs[MLK_SP_REG];
	bool kept = false;
	int err;

	s->end = mlk_dec_delta(&c->columns[MLK_COL_STACK], s->end);
	ev->stack = NULL;
	if (c->columns[MLK_COL_STACK].bad || s->end < sp || s->end - sp > MLK_MAX_STACK)
		return MLK_E_CORRUPT;
	ev->stack_len = (uint32_t)(s->end - sp);
	if (!ev->stack_len)
		return 0;
	if (s->end % MLK_WORD)
		return MLK_E_CORRUPT;
	c->lo = align_down(sp);
	err = decode_image(c, s, &kept);
	if (err)
		return err;
	ev->stack = mlk_image_at(&s->image, sp);
	if (kept)
		ev->stack_same_from = same_from(c, s, &before);
	keep_top(c, s);
	return 0;
}

int mlk_decode_stack(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	uint64_t sp_before = s->regs[MLK_SP_REG];
	int err;

	c->changed_to = c->nr_under = 0;
	ev->stack_same_from = UINT64_MAX;
	err = decode_regs(c, s, ev);
	return err ? err : decode_bytes(c, s, sp_before, ev);
}
