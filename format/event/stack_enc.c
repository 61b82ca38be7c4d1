/* stack_enc.c - registers and stacks to columns: only what changed, and of that what was not
 * guessed */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"

/* How many words before the last one @word came, or as many as that cannot be told of. */
static unsigned int came_ago(const struct mlk_encoder *e, uint64_t word)
{
	uint16_t at = e->recent_at[mlk_recent_slot(word)];
	unsigned int ago = (uint16_t)(e->predict.nr_recent - 1 - at);

	return ago < MLK_RECENT && mlk_predict_recent(&e->predict, ago) == word ? ago : MLK_RECENT;
}

void mlk_encode_came(struct mlk_encoder *e, uint64_t word)
{
	e->recent_at[mlk_recent_slot(word)] = (uint16_t)e->predict.nr_recent;
	mlk_predict_came(&e->predict, word);
}

/* How far is it from @a to @b? */
static uint64_t distance(uint64_t a, uint64_t b)
{
	return a - b < b - a ? a - b : b - a;
}

/* Write a new word, beside what it is nearer to: the new one before, or the last address. */
static void write_new_word(struct mlk_encoder *e, struct mlk_enc *col, uint64_t word)
{
	bool near = distance(word, e->addr) < distance(word, e->new_word);

	mlk_enc_u8(col, near ? MLK_WORD_NEAR : MLK_WORD_NEW);
	mlk_enc_delta(&e->columns[MLK_COL_NEW], word, near ? e->addr : e->new_word);
	e->new_word = word;
}

/* Write @word, which is not 0 and was not guessed: by when it came, or by its number in the
 * dictionary, to which a new one is added.  0 or -ENOMEM. */
static int write_known_word(struct mlk_encoder *e, const struct mlk_waiting *w)
{
	const unsigned int nr_recent = mlk_column_recent(w->column);
	struct mlk_enc *col = &e->columns[w->column];
	unsigned int ago = nr_recent ? came_ago(e, w->word) : nr_recent;
	uint32_t *number;

	if (ago < nr_recent) {
		mlk_enc_u8(col, (uint8_t)(MLK_WORD_FIRST + ago));
		return 0;
	}
	number = mlk_dict_at(&e->words, w->word);
	if (!number)
		return -ENOMEM;
	if (*number) {
		mlk_enc_uvar(col, *number + nr_recent);
		return 0;
	}
	*number = (uint32_t)(MLK_WORD_FIRST - 1 + e->words.nr);
	write_new_word(e, col, w->word);
	return 0;
}

/* Write a word that has waited.  0 or -ENOMEM. */
static int write_word(struct mlk_encoder *e, const struct mlk_waiting *w)
{
	uint64_t word = w->word, beside = *w->guess.beside, by_place = *w->guess.place;
	int err = 0;

	*w->guess.beside = *w->guess.place = word;
	if (word == beside || word == by_place || !word)
		mlk_enc_u8(&e->columns[w->column], word == beside     ? MLK_WORD_BESIDE
						   : word == by_place ? MLK_WORD_PLACE
								      : MLK_WORD_ZERO);
	else
		err = write_known_word(e, w);
	if (mlk_column_recent(w->column))
		mlk_encode_came(e, word);
	return err;
}

/* Write the words that wait, in their order. */
static int write_words(struct mlk_encoder *e)
{
	int err = 0;

	for (unsigned int i = 0; i < e->nr_waiting && !err; i++)
		err = write_word(e, &e->waiting[i]);
	e->nr_waiting = 0;
	return err;
}

/*
 * A word at @place (see predict.h) into @column; @gap is as for mlk_predict_by().  Tables and
 * dictionary do not fit into a near cache, and each word would wait for memory: so all words of an
 * event are looked for first, where they will be needed is requested, and then they are written.  0
 * or -ENOMEM.
 */
static int encode_word(struct mlk_encoder *e, enum mlk_column column, uint64_t gap, uint64_t place,
		       uint64_t word)
{
	struct mlk_waiting *w = &e->waiting[e->nr_waiting++];

	w->word = word;
	w->column = column;
	w->guess = mlk_predict_by(&e->predict, gap, place, e->predict.before, e->predict.pc);
	__builtin_prefetch(w->guess.beside, 1);
	__builtin_prefetch(w->guess.place, 1);
	if (word)
		mlk_dict_expect(&e->words, word);
	e->predict.before = word;
	return e->nr_waiting == MLK_MAX_WAITING ? write_words(e) : 0;
}

static int encode_regs(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	struct mlk_enc *col = &e->columns[MLK_COL_REGS];
	uint64_t sp = ev->regs[MLK_SP_REG], mask = 0, value[MLK_MAX_REGS];
	int err = 0;

	for (unsigned int r = 0; r < ev->nr_regs; r++) {
		value[r] = ev->regs[r];
		if (e->filter.mode == MLK_STACK_REDACTED && r != MLK_SP_REG &&
		    !mlk_filter_keeps(&e->filter, value[r], sp))
			value[r] = 0;
		if (r != MLK_SP_REG && value[r] != s->regs[r])
			mask |= 1ull << r;
	}
	mlk_enc_u8(col, (uint8_t)ev->nr_regs);
	mlk_enc_delta(col, sp, s->regs[MLK_SP_REG]);
	mlk_enc_uvar(col, mask);
	for (unsigned int r = 0; !err && r < ev->nr_regs; r++)
		if (mask >> r & 1)
			err = encode_word(e, MLK_COL_REG_WORDS, r, r, value[r]);
	memcpy(s->regs, value, ev->nr_regs * sizeof(value[0]));
	e->predict.pc = value[ev->nr_regs - 1];
	return err;
}

/* A stack on its way into the columns. */
struct taken {
	const uint8_t *bytes; /* of lo */
	uint64_t lo, hi;      /* multiples of MLK_WORD */
	uint64_t sp;
	uint64_t kept_from; /* from here on all is as the images have it */
};

static uint64_t word_at(const struct taken *t, uint64_t at)
{
	uint64_t word;

	memcpy(&word, t->bytes + (at - t->lo), sizeof(word));
	return le64toh(word);
}

/* Bit i: word i of the @len bytes at @is, at most a slice, is not what it was in those at @was. */
static uint16_t changed_words(const uint8_t *was, const uint8_t *is, size_t len)
{
	uint32_t changed = 0;

	for (size_t i = 0; i < len / MLK_WORD; i++) {
		uint64_t x, y;

		memcpy(&x, was + i * MLK_WORD, sizeof(x));
		memcpy(&y, is + i * MLK_WORD, sizeof(y));
		changed |= (uint32_t)(x != y) << i;
	}
	return (uint16_t)changed;
}

/* A word of a stack, the next one that is told of it. */
static int encode_stack_word(struct mlk_encoder *e, const struct taken *t, uint64_t at,
			     uint64_t word)
{
	const uint64_t before = e->told_to, nr = (at - t->lo) / MLK_WORD;

	e->told_to = nr + 1;
	return encode_word(e, MLK_COL_WORDS, MLK_PLACE_GAP + e->told_to - before,
			   MLK_PLACE_STACK + nr, mlk_stack_word(word, at, mlk_near_stack(t->sp)));
}

/* The words of the slice from @at on with their bit in *@mask are not as they were.  List those
 * that are not as the image has them: *@mask is theirs then, as the column has it. */
static int encode_slice(struct mlk_encoder *e, struct mlk_stream *s, const struct taken *t,
			uint64_t at, uint16_t *mask)
{
	const unsigned int first = (unsigned int)(at % MLK_BLOCK / MLK_WORD);
	bool all = e->filter.mode == MLK_STACK_RAW;
	uint32_t changed = *mask;
	int err = 0;

	*mask = 0;
	for (; changed && !err; changed &= changed - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(changed);
		uint64_t word = word_at(t, at + i * MLK_WORD);

		if (!all) {
			mlk_image_set(&s->raw, at + i * MLK_WORD, word);
			if (!mlk_filter_keeps(&e->filter, word, t->sp))
				word = 0;
		}
		if (word == mlk_image_word(&s->image, at + i * MLK_WORD))
			continue;
		*mask |= (uint16_t)(1 << (first + i));
		mlk_image_set(&s->image, at + i * MLK_WORD, word);
		err = encode_stack_word(e, t, at + i * MLK_WORD, word);
	}
	return err;
}

/* The slices that changed: their number, the gaps between them, and what changed in them. */
static int encode_slices(struct mlk_encoder *e, struct mlk_stream *s, const struct taken *t)
{
	struct mlk_image *before = e->filter.mode == MLK_STACK_RAW ? &s->image : &s->raw;
	uint16_t gaps[MLK_MAX_STACK / MLK_BLOCK + 2], mask, gap = 0;
	unsigned int nr = 0;
	uint64_t end;
	int err = 0;

	e->told_to = 0;
	/* The filter is another: words that were left out look changed, in all that is held. */
	if (s->epoch != e->epoch && before != &s->image)
		memcpy(mlk_image_at(before, before->lo), mlk_image_at(&s->image, before->lo),
		       (size_t)(before->hi - before->lo));
	for (uint64_t at = t->lo; at < t->hi && at < t->kept_from && !err; at = end) {
		const uint8_t *was = mlk_image_at(before, at), *is = t->bytes + (at - t->lo);

		end = mlk_slice_end(at, t->hi);
		mask = 0;
		if (memcmp(was, is, (size_t)(end - at))) {
			mask = changed_words(was, is, (size_t)(end - at));
			err = encode_slice(e, s, t, at, &mask);
		}
		if (!mask) {
			gap++;
			continue;
		}
		mlk_enc_u8(&e->columns[MLK_COL_MASKS], (uint8_t)mask);
		mlk_enc_u8(&e->columns[MLK_COL_MASKS], (uint8_t)(mask >> 8));
		gaps[nr++] = gap;
		gap = 0;
	}
	s->epoch = e->epoch;
	mlk_enc_uvar(&e->columns[MLK_COL_STACK], nr);
	for (unsigned int i = 0; i < nr; i++)
		mlk_enc_uvar(&e->columns[MLK_COL_STACK], gaps[i]);
	return err;
}

/* Slice 0 as it was: of the words that the image has not, those that are not what was shown there
 * last. */
static int encode_top(struct mlk_encoder *e, const struct mlk_stream *s, const struct taken *t)
{
	uint64_t end = mlk_top_end(t->lo, t->hi);
	uint16_t mask = 0;
	int err = 0;

	for (uint64_t at = t->lo; at < end && !err; at += MLK_WORD) {
		uint64_t *shown = mlk_predict_shown(&e->predict, at), word = word_at(t, at);
		unsigned int i = (unsigned int)((at - t->lo) / MLK_WORD);

		if (mlk_image_word(&s->image, at) || *shown == word)
			continue;
		*shown = word;
		mask |= (uint16_t)(1 << i);
		err = encode_word(e, MLK_COL_TOP_WORDS, MLK_PLACE_TOP + i, MLK_PLACE_TOP + i, word);
	}
	mlk_enc_u8(&e->columns[MLK_COL_TOP], (uint8_t)mask);
	mlk_enc_u8(&e->columns[MLK_COL_TOP], (uint8_t)(mask >> 8));
	return err;
}

/* Count what the chunk's images hold: a reader refuses more than MLK_MAX_HELD.  Of what they do not
 * hold yet nothing is kept. */
static int extend(struct mlk_encoder *e, struct mlk_stream *s, struct taken *t)
{
	uint64_t before = s->image.hi - s->image.lo;
	bool held = t->kept_from >= s->image.lo && t->hi <= s->image.hi && s->epoch == e->epoch;
	int err = mlk_image_extend(&s->image, t->lo, t->hi);

	if (!held || err != 1 || !t->kept_from)
		t->kept_from = UINT64_MAX;

	if (err >= 0 && e->filter.mode != MLK_STACK_RAW)
		err = mlk_image_extend(&s->raw, t->lo, t->hi);
	e->held += s->image.hi - s->image.lo - before;
	return err < 0 ? err : 0;
}

/* The bytes of the stack. */
static int encode_bytes(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	uint64_t sp = ev->regs[MLK_SP_REG];
	struct taken t = {.bytes = ev->stack,
			  .sp = sp,
			  .kept_from = ev->stack_kept_from,
			  .lo = sp & ~(uint64_t)(MLK_WORD - 1),
			  .hi = (sp + ev->stack_len) & ~(uint64_t)(MLK_WORD - 1)};
	uint8_t *copy = NULL;
	int err;

	if (t.hi < sp)
		t.hi = sp; /* not one whole word */
	mlk_enc_delta(&e->columns[MLK_COL_STACK], t.hi, s->end);
	s->end = t.hi;
	if (t.hi <= sp)
		return 0;
	if (t.lo != sp) {
		/* A stack pointer that is no multiple of 8: the bytes below it are taken as zero.
		 */
		copy = calloc(1, (size_t)(t.hi - t.lo));
		if (!copy)
			return -ENOMEM;
		memcpy(copy + (sp - t.lo), ev->stack, (size_t)(t.hi - sp));
		t.bytes = copy;
	}
	err = extend(e, s, &t);
	if (!err)
		err = encode_slices(e, s, &t);
	if (!err && e->filter.mode == MLK_STACK_FILTERED)
		err = encode_top(e, s, &t);
	free(copy);
	return err;
}

int mlk_encode_stack(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	int err = encode_regs(e, s, ev);

	if (!err)
		err = encode_bytes(e, s, ev);
	return err ? err : write_words(e);
}
