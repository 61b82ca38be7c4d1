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

static int decode_stack(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	uint64_t sp = s->regs[MLK_SP_REG], lo = sp & ~(uint64_t)(MLK_WORD - 1), before;
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
	before = s->image.hi - s->image.lo;
	err = mlk_image_extend(&s->image, lo, s->end);
	if (err)
		return err;
	c->held += s->image.hi - s->image.lo - before;
	/* More than any writer holds: this is to exhaust our memory. */
	if (c->held > MLK_MAX_HELD)
		return MLK_E_CORRUPT;
	err = decode_slices(c, &s->image, lo, s->end);
	if (!err && c->mode == MLK_STACK_FILTERED)
		err = cover(c, s, lo, s->end);
	ev->stack = mlk_image_at(&s->image, sp);
	return err;
}

static int decode_alloc(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev)
{
	int err;

	ev->addr = mlk_dec_delta(&c->columns[MLK_COL_ADDR], c->addr);
	ev->size = mlk_dec_uvar(&c->columns[MLK_COL_SIZE]);
	ev->func = mlk_dec_u8(&c->columns[MLK_COL_FUNC]);
	ev->alloc_id = c->alloc_id = mlk_dec_delta(&c->columns[MLK_COL_ID], c->alloc_id + 1);
	ev->flags = (uint32_t)mlk_dec_uvar_max(&c->columns[MLK_COL_FLAGS], UINT32_MAX);
	err = append(&c->blocks, &c->nr_blocks, &c->room_blocks, ev->addr);
	if (!err)
		err = decode_regs(c, s, ev);
	return err ? err : decode_stack(c, s, ev);
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
