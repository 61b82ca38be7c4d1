/* events_dec.c - columns to events; nothing here is believed before it is checked */
#include <errno.h>
#include <stdlib.h>

#include "format/events.h"

int mlk_decoder_begin(struct mlk_decoder *c, struct mlk_dec *d, uint64_t first_ns)
{
	uint64_t len[MLK_COL_NR] = {0}, nr;

	mlk_streams_trim(c->streams, c->nr);
	c->covered = NULL;
	c->time_ns = first_ns;
	c->addr = c->alloc_id = c->new_word = c->held = 0;
	c->nr = c->nr_words = c->nr_blocks = 0;
	c->mode = mlk_dec_u8(d);
	nr = mlk_dec_u8(d);
	if (nr < MLK_COL_NR || c->mode > MLK_STACK_REDACTED)
		return MLK_E_CORRUPT;
	/* Columns of a later version come behind those known here, and are left alone. */
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t bytes = mlk_dec_uvar(d);

		if (i < MLK_COL_NR)
			len[i] = bytes;
	}
	for (int i = 0; i < MLK_COL_NR; i++) {
		c->columns[i].at = mlk_dec_bytes(d, len[i]);
		if (d->bad)
			return MLK_E_CORRUPT;
		c->columns[i].end = c->columns[i].at + len[i];
		c->columns[i].bad = false;
	}
	return 0;
}

void mlk_decoder_release(struct mlk_decoder *c)
{
	mlk_streams_trim(c->streams, c->room);
	free(c->streams);
	free(c->words);
	free(c->blocks);
	memset(c, 0, sizeof(*c));
}

bool mlk_decoder_more(const struct mlk_decoder *c)
{
	return c->columns[MLK_COL_KIND].at < c->columns[MLK_COL_KIND].end;
}

/* Append @value to a list. */
static int append(uint64_t **list, size_t *nr, size_t *room, uint64_t value)
{
	if (*nr == *room) {
		size_t wider = *room ? *room * 2 : 1024;
		uint64_t *grown = realloc(*list, wider * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*list = grown;
		*room = wider;
	}
	(*list)[(*nr)++] = value;
	return 0;
}

static struct mlk_stream *decode_thread(struct mlk_decoder *c)
{
	struct mlk_dec *d = &c->columns[MLK_COL_THREAD];
	uint64_t number = mlk_dec_uvar_max(d, c->nr);
	uint32_t id[2];

	if (d->bad)
		return NULL;
	if (number)
		return &c->streams[number - 1];
	id[0] = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	id[1] = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	return mlk_stream_add(&c->streams, &c->nr, &c->room, id);
}

static int decode_word(struct mlk_decoder *c, uint64_t *word)
{
	struct mlk_dec *d = &c->columns[MLK_COL_WORDS];
	uint64_t number = mlk_dec_uvar_max(d, MLK_WORD_ZERO + c->nr_words);

	*word = 0;
	if (number == MLK_WORD_ZERO || d->bad)
		return d->bad ? MLK_E_CORRUPT : 0;
	if (number > MLK_WORD_ZERO) {
		*word = c->words[number - MLK_WORD_ZERO - 1];
		return 0;
	}
	*word = c->new_word = mlk_dec_delta(&c->columns[MLK_COL_NEW], c->new_word);
	return append(&c->words, &c->nr_words, &c->room_words, *word);
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
	for (unsigned int r = 0; !err && r < ev->nr_regs; r++)
		if (mask >> r & 1)
			err = decode_word(c, &s->regs[r]);
	memcpy(ev->regs, s->regs, sizeof(ev->regs));
	return err;
}

static uint16_t decode_mask(struct mlk_decoder *c)
{
	const uint8_t *p = mlk_dec_bytes(&c->columns[MLK_COL_MASKS], 2);

	return p ? mlk_get_u16(p) : 0;
}

/* Read the listed words of the slice [@at, @end). */
static int decode_slice(struct mlk_decoder *c, struct mlk_image *im, uint64_t at, uint64_t end)
{
	uint16_t mask = decode_mask(c);
	uint64_t base = at & ~(uint64_t)(MLK_BLOCK - 1), word;
	int err = 0;

	for (unsigned int i = 0; !err && mask >> i; i++) {
		if (!(mask >> i & 1))
			continue;
		if (base + i * MLK_WORD < at || base + i * MLK_WORD >= end)
			return MLK_E_CORRUPT;
		err = decode_word(c, &word);
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

/* Lay slice 0, as it was, over the image; uncover() takes it off again. */
static int cover(struct mlk_decoder *c, struct mlk_stream *s, uint64_t lo, uint64_t hi)
{
	uint64_t end = mlk_top_end(lo, hi);
	const uint8_t *bytes = mlk_dec_bytes(&c->columns[MLK_COL_TOP], end - lo);

	if (!bytes)
		return MLK_E_CORRUPT;
	c->covered = s;
	c->nr_under = 0;
	for (uint64_t at = lo; at < end; at += MLK_WORD) {
		uint64_t kept = mlk_image_word(&s->image, at);

		c->under[c->nr_under++] = kept;
		if (!kept)
			mlk_image_set(&s->image, at, mlk_get_u64(bytes + (at - lo)));
	}
	return 0;
}

static void uncover(struct mlk_decoder *c)
{
	struct mlk_stream *s = c->covered;
	uint64_t lo;

	if (!s)
		return;
	lo = s->regs[MLK_SP_REG] & ~(uint64_t)(MLK_WORD - 1);
	for (unsigned int i = 0; i < c->nr_under; i++)
		mlk_image_set(&s->image, lo + i * MLK_WORD, c->under[i]);
	c->covered = NULL;
}

struct range {
	uint64_t lo, hi;
};

static uint64_t align_down(uint64_t at)
{
	return at & ~(uint64_t)(MLK_WORD - 1);
}

/* The word of @s's last stack, before this event, at @at where no word was listed for this one. */
static uint64_t word_before(const struct mlk_decoder *c, const struct mlk_stream *s, uint64_t at,
			    const struct range *before)
{
	uint64_t before_lo = align_down(before->lo), lo = align_down(s->regs[MLK_SP_REG]);

	if (c->mode != MLK_STACK_FILTERED)
		return mlk_image_word(&s->image, at);
	if (at - before_lo < mlk_top_end(before_lo, before->hi) - before_lo)
		return s->top[(at - before_lo) / MLK_WORD];
	return at - lo < c->nr_under * MLK_WORD ? c->under[(at - lo) / MLK_WORD]
						: mlk_image_word(&s->image, at);
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

	for (unsigned int i = 0; i < c->nr_under; i++)
		s->top[i] = mlk_image_word(&s->image, lo + i * MLK_WORD);
}

/* Change the image to @s's stack [@lo, s->end), and say in *@kept whether it holds still what it
 * held. */
static int decode_image(struct mlk_decoder *c, struct mlk_stream *s, uint64_t lo, bool *kept)
{
	uint64_t before = s->image.hi - s->image.lo;
	int err = mlk_image_extend(&s->image, lo, s->end);

	if (err < 0)
		return err;
	*kept = err;
	c->held += s->image.hi - s->image.lo - before;
	/* More than any writer holds: this is to exhaust our memory. */
	if (c->held > MLK_MAX_HELD)
		return MLK_E_CORRUPT;
	err = decode_slices(c, &s->image, lo, s->end);
	return !err && c->mode == MLK_STACK_FILTERED ? cover(c, s, lo, s->end) : err;
}

/* @sp_before is the stack pointer of the thread's last event. */
static int decode_stack(struct mlk_decoder *c, struct mlk_stream *s, uint64_t sp_before,
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
	err = decode_image(c, s, align_down(sp), &kept);
	if (err)
		return err;
	ev->stack = mlk_image_at(&s->image, sp);
	if (kept)
		ev->stack_same_from = same_from(c, s, &before);
	keep_top(c, s);
	return 0;
}

static int decode_alloc(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	uint64_t sp_before = s->regs[MLK_SP_REG];
	int err;

	c->changed_to = c->nr_under = 0;
	ev->stack_same_from = UINT64_MAX;
	ev->addr = mlk_dec_delta(&c->columns[MLK_COL_ADDR], c->addr);
	ev->size = mlk_dec_uvar(&c->columns[MLK_COL_SIZE]);
	ev->func = mlk_dec_u8(&c->columns[MLK_COL_FUNC]);
	ev->alloc_id = c->alloc_id = mlk_dec_delta(&c->columns[MLK_COL_ID], c->alloc_id + 1);
	ev->flags = (uint32_t)mlk_dec_uvar_max(&c->columns[MLK_COL_FLAGS], UINT32_MAX);
	err = append(&c->blocks, &c->nr_blocks, &c->room_blocks, ev->addr);
	if (!err)
		err = decode_regs(c, s, ev);
	return err ? err : decode_stack(c, s, sp_before, ev);
}

static uint64_t decode_freed(struct mlk_decoder *c)
{
	struct mlk_dec *d = &c->columns[MLK_COL_ADDR];
	uint64_t ago = mlk_dec_uvar_max(d, c->nr_blocks);

	return ago ? c->blocks[c->nr_blocks - ago] : mlk_dec_delta(d, c->addr);
}

static bool any_bad(const struct mlk_decoder *c)
{
	bool bad = false;

	for (int i = 0; i < MLK_COL_NR; i++)
		bad |= c->columns[i].bad;
	return bad;
}

int mlk_decoder_next(struct mlk_decoder *c, struct mlk_event *ev)
{
	uint8_t head = mlk_dec_u8(&c->columns[MLK_COL_KIND]);
	struct mlk_stream *s;
	int err = 0;

	uncover(c);
	memset(ev, 0, sizeof(*ev));
	ev->kind = head & MLK_HEAD_KIND;
	if (!ev->kind || ev->kind >= MLK_KIND_NR || head & ~(MLK_HEAD_KIND | MLK_HEAD_NESTED))
		return MLK_E_CORRUPT;
	if (head & MLK_HEAD_NESTED && ev->kind != MLK_FREE)
		return MLK_E_CORRUPT;
	if (head & MLK_HEAD_NESTED)
		ev->flags = MLK_EVENT_NESTED;
	s = decode_thread(c);
	if (!s)
		return c->columns[MLK_COL_THREAD].bad ? MLK_E_CORRUPT : -ENOMEM;
	ev->tgid = s->tgid;
	ev->tid = s->tid;
	ev->time_ns = c->time_ns = mlk_dec_delta(&c->columns[MLK_COL_TIME], c->time_ns);
	if (ev->kind == MLK_ALLOC)
		err = decode_alloc(c, s, ev);
	else if (ev->kind != MLK_EXEC)
		ev->addr = decode_freed(c);
	if (ev->kind != MLK_EXEC)
		c->addr = ev->addr;
	return err ? err : any_bad(c) ? MLK_E_CORRUPT : 0;
}
