/* stack_dec.c - columns to registers and stacks; nothing here is believed before it is checked */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"

struct range {
	uint64_t lo, hi;
};

static uint64_t align_down(uint64_t at)
{
	return at & ~(uint64_t)(MLK_WORD - 1);
}

/* Read a new word, and give it the next number.  It is told as the difference to @base.  0 or
 * -ENOMEM. */
static int decode_new_word(struct mlk_decoder *c, uint64_t base, uint64_t *word)
{
	*word = c->new_word = mlk_dec_delta(&c->columns[MLK_COL_NEW], base);
	return mlk_append(&c->words, &c->nr_words, &c->room_words, *word);
}

/*
 * The words of a column, doc/trace-format.md 4.4.2: the innermost loop of all reading.  A stack
 * takes some dozens of words.  So where the column stands, and what is the same for all words of a
 * stack's part, is kept aside in variables, which a compiler leaves in registers.
 */
struct mlk_words {
	enum mlk_column column;
	const uint8_t *at, *end;
	const uint64_t *known; /* the dictionary */
	size_t nr_known;
	uint64_t before, pc; /* as in struct mlk_predict */
	unsigned int near; /* number of a new word near the last address; or again of a new word */
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
		.near = c->coding >= MLK_CODING_3 ? MLK_WORD_NEAR : MLK_WORD_NEW,
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

/* The next word of the column, whose places are @gap and @place; see encode_word().  @nr_recent
 * words are told by when they came, or 0: none, and none comes.  0, MLK_E_CORRUPT or -ENOMEM. */
static inline __attribute__((always_inline)) int mlk_words_next(struct mlk_decoder *c,
								struct mlk_words *w, uint64_t gap,
								uint64_t place,
								const unsigned int nr_recent,
								uint64_t *word)
{
	const struct mlk_guess guess = mlk_predict_by(&c->predict, gap, place, w->before, w->pc);
	const uint64_t number = mlk_words_number(c, w), beside = *guess.beside;
	const uint64_t ago = number - MLK_WORD_FIRST;
	const bool recent = ago < nr_recent;
	const uint64_t known = recent ? 0 : number < MLK_WORD_FIRST ? number : number - nr_recent;

	if (__builtin_expect(known >= w->nr_known, 0))
		return MLK_E_CORRUPT;
	*word = recent ? mlk_predict_recent(&c->predict, ago) : w->known[known];
	if (number == MLK_WORD_PLACE)
		*word = *guess.place;
	if (number == MLK_WORD_BESIDE)
		*word = beside;
	if (__builtin_expect(!(number & ~(uint64_t)w->near), 0)) { /* MLK_WORD_NEW is 0 */
		int err = decode_new_word(c, number ? c->addr : c->new_word, word);

		if (err)
			return err;
		w->known = c->words;
		w->nr_known = c->nr_words;
	}
	*guess.beside = *guess.place = w->before = *word;
	if (nr_recent)
		mlk_predict_came(&c->predict, *word);
	return 0;
}

/* The next word in the first coding, in which all are in one column and nothing is guessed. */
static int next_word_0(struct mlk_decoder *c, uint64_t *word)
{
	const size_t further = MLK_WORD_FIRST_1 - MLK_WORD_FIRST_0;
	uint64_t number = mlk_dec_uvar(&c->columns[MLK_COL_WORDS]);

	if (number == MLK_WORD_NEW)
		return decode_new_word(c, c->new_word, word);
	if (number >= c->nr_words - further)
		return MLK_E_CORRUPT;
	*word = number == MLK_WORD_ZERO ? 0 : c->words[number + further];
	return 0;
}

/* Read a word for each bit i of @mask into word i of the bytes at @to, in the first coding. */
static int decode_words_0(struct mlk_decoder *c, uint64_t mask, uint8_t *to)
{
	int err = 0;

	for (; !err && mask; mask &= mask - 1) {
		uint64_t word = 0;

		err = next_word_0(c, &word);
		word = htole64(word);
		memcpy(to + __builtin_ctzll(mask) * MLK_WORD, &word, MLK_WORD);
	}
	return err;
}

/* As decode_words(), but not in the first coding; @nr_recent is that of mlk_words_next(). */
static inline __attribute__((always_inline)) int decode_words_1(struct mlk_decoder *c,
								struct mlk_words *w, uint64_t place,
								uint64_t mask,
								const unsigned int nr_recent,
								uint8_t *to)
{
	int err = 0;

	for (; !err && mask; mask &= mask - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(mask);
		uint64_t word = 0;

		err = mlk_words_next(c, w, place + i, place + i, nr_recent, &word);
		word = htole64(word);
		memcpy(to + i * MLK_WORD, &word, MLK_WORD);
	}
	return err;
}

/* Read a word of @column for each bit i of @mask, lowest first, which is at @place + i: into word i
 * of the bytes at @to, as an image has it. */
static int decode_words(struct mlk_decoder *c, enum mlk_column column, uint64_t place,
			uint64_t mask, uint8_t *to)
{
	struct mlk_words w = mlk_words_begin(c, column);
	int err;

	if (__builtin_expect(c->coding == MLK_CODING_0, 0))
		return decode_words_0(c, mask, to);
	/* most words are those of stacks: they get a loop of their own, without those that came */
	if (c->coding >= MLK_CODING_3 && mlk_column_recent(column))
		err = decode_words_1(c, &w, place, mask, MLK_RECENT, to);
	else
		err = decode_words_1(c, &w, place, mask, 0, to);
	mlk_words_end(c, &w);
	return err;
}

static int decode_regs(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	struct mlk_dec *d = &c->columns[MLK_COL_REGS];
	uint8_t words[MLK_MAX_REGS * MLK_WORD];
	uint64_t mask;
	int err;

	ev->nr_regs = mlk_dec_u8(d);
	if (ev->nr_regs <= MLK_SP_REG || ev->nr_regs > MLK_MAX_REGS)
		return MLK_E_CORRUPT;
	s->regs[MLK_SP_REG] = mlk_dec_delta(d, s->regs[MLK_SP_REG]);
	mask = mlk_dec_uvar_max(d, (1ull << ev->nr_regs) - 1);
	if (mask >> MLK_SP_REG & 1)
		return MLK_E_CORRUPT;
	err = decode_words(c, MLK_COL_REG_WORDS, 0, mask, words);
	for (; !err && mask; mask &= mask - 1) {
		unsigned int r = (unsigned int)__builtin_ctzll(mask);

		s->regs[r] = mlk_get_u64(words + r * MLK_WORD);
	}
	c->predict.pc = s->regs[ev->nr_regs - 1];
	memcpy(ev->regs, s->regs, ev->nr_regs * sizeof(*ev->regs));
	return err;
}

/* Read a word of a stack for each bit i of @mask into word i of the bytes at @to, which is word
 * @first + i of the stack: in coding 4. */
static int decode_stack_words(struct mlk_decoder *c, uint64_t first, uint64_t mask, uint8_t *to)
{
	const struct mlk_near near = mlk_near_stack(c->sp);
	struct mlk_words w = mlk_words_begin(c, MLK_COL_WORDS);
	uint64_t told_to = c->told_to, lo = c->lo;
	int err = 0;

	for (; !err && mask; mask &= mask - 1) {
		const uint64_t i = (unsigned int)__builtin_ctzll(mask), nr = first + i;
		uint64_t word = 0;

		err = mlk_words_next(c, &w, MLK_PLACE_GAP + nr + 1 - told_to, MLK_PLACE_STACK + nr,
				     0, &word);
		word = htole64(mlk_stack_word(word, lo + nr * MLK_WORD, near));
		memcpy(to + i * MLK_WORD, &word, MLK_WORD);
		told_to = nr + 1;
	}
	c->told_to = told_to;
	mlk_words_end(c, &w);
	return err;
}

/* Read the listed words of @slice. */
static int decode_slice(struct mlk_decoder *c, struct mlk_image *im, struct range slice)
{
	const unsigned int nr = (unsigned int)((slice.hi - slice.lo) / MLK_WORD);
	const unsigned int below = (unsigned int)(slice.lo % MLK_BLOCK / MLK_WORD);
	const uint32_t mask = mlk_dec_u16(&c->columns[MLK_COL_MASKS]), words = mask >> below;

	if (words >> nr || words << below != mask)
		return MLK_E_CORRUPT;
	if (words)
		c->changed_to = slice.lo + (32 - (unsigned int)__builtin_clz(words)) * MLK_WORD;
	if (c->coding == MLK_CODING_4)
		return decode_stack_words(c, (slice.lo - c->lo) / MLK_WORD, words,
					  mlk_image_at(im, slice.lo));
	return decode_words(c, MLK_COL_WORDS, MLK_PLACE_STACK + (slice.lo - c->lo) / MLK_WORD,
			    words, mlk_image_at(im, slice.lo));
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
		struct range slice;

		offset += mlk_dec_uvar_max(d, most) * MLK_BLOCK;
		if (d->bad || offset >= hi - first)
			return MLK_E_CORRUPT;
		slice.lo = offset ? first + offset : lo;
		slice.hi = mlk_slice_end(slice.lo, hi);
		err = decode_slice(c, im, slice);
		offset += MLK_BLOCK;
	}
	return d->bad ? MLK_E_CORRUPT : err;
}

/* In the first coding the words of the top are unchanged, also those that the image has. */
static int cover_0(struct mlk_decoder *c, struct mlk_image *im)
{
	for (unsigned int i = 0; i < c->nr_under; i++) {
		uint64_t word = mlk_dec_u64(&c->columns[MLK_COL_TOP]);

		if (c->empty >> i & 1)
			mlk_image_set(im, c->lo + i * MLK_WORD, word);
	}
	return 0;
}

/* Lay the words of the top over the image where that has none: those that are listed, and of the
 * others what was shown there last. */
static int cover_words(struct mlk_decoder *c, struct mlk_image *im)
{
	const uint32_t listed = mlk_dec_u16(&c->columns[MLK_COL_TOP]);
	uint8_t words[MLK_BLOCK];
	int err;

	if (listed & ~c->empty)
		return MLK_E_CORRUPT;
	err = decode_words(c, MLK_COL_TOP_WORDS, MLK_PLACE_TOP, listed, words);
	for (uint32_t left = c->empty; left && !err; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		uint64_t at = c->lo + i * MLK_WORD;
		uint64_t *shown = mlk_predict_shown(&c->predict, at);

		if (listed >> i & 1)
			*shown = mlk_get_u64(words + i * MLK_WORD);
		mlk_image_set(im, at, *shown);
	}
	return err;
}

/* Lay slice 0, as it was, over the image; mlk_decode_uncover() takes it off again. */
static int cover(struct mlk_decoder *c, struct mlk_stream *s, uint64_t hi)
{
	const unsigned int nr = (unsigned int)((mlk_top_end(c->lo, hi) - c->lo) / MLK_WORD);
	uint32_t empty = 0;

	for (unsigned int i = 0; i < nr; i++)
		empty |= (uint32_t)!mlk_image_word(&s->image, c->lo + i * MLK_WORD) << i;
	c->covered = s;
	c->nr_under = nr;
	c->empty = empty;
	return c->coding == MLK_CODING_0 ? cover_0(c, &s->image) : cover_words(c, &s->image);
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
 * See mlk_event.stack_same_from; @before is where the thread's last stack was.  Above both tops the
 * stacks are those of the image, in which nothing but the listed words changed.
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

/* Keep what was returned of slice 0, to compare it with the next event. */
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
	c->sp = sp;
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

	c->changed_to = c->told_to = c->nr_under = 0;
	ev->stack_same_from = UINT64_MAX;
	err = decode_regs(c, s, ev);
	return err ? err : decode_bytes(c, s, sp_before, ev);
}
