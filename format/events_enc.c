/* events_enc.c - events to columns: differences, and of each stack only the words that changed */
#include <errno.h>
#include <stdlib.h>

#include "format/events.h"

/* Memory of images that is kept from one chunk to the next. */
#define KEEP_IMAGES (64u << 20)

/* Give the images' memory back when there is much of it: threads come and go. */
static void trim_images(struct mlk_encoder *e)
{
	size_t room = 0;

	for (size_t i = 0; i < e->room; i++)
		room += e->streams[i].image.room + e->streams[i].raw.room;
	if (room <= KEEP_IMAGES)
		return;
	mlk_streams_trim(e->streams, e->room);
}

void mlk_encoder_begin(struct mlk_encoder *e, uint64_t first_ns)
{
	e->time_ns = first_ns;
	e->addr = e->alloc_id = e->new_word = 0;
	e->nr = e->nr_allocs = 0;
	e->bytes = e->held = 0;
	for (int i = 0; i < MLK_COL_NR; i++)
		e->columns[i].len = 0;
	if (e->slots)
		memset(e->slots, 0, e->nr_slots * sizeof(*e->slots));
	mlk_dict_reset(&e->words);
	mlk_dict_reset(&e->blocks);
	trim_images(e);
}

void mlk_encoder_release(struct mlk_encoder *e)
{
	mlk_streams_trim(e->streams, e->room);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&e->columns[i]);
	mlk_dict_release(&e->words);
	mlk_dict_release(&e->blocks);
	free(e->streams);
	free(e->slots);
	memset(e, 0, sizeof(*e));
}

static uint32_t *find_slot(const struct mlk_encoder *e, uint32_t tgid, uint32_t tid)
{
	size_t i = (tid * 0x9e3779b1u ^ tgid) & (e->nr_slots - 1);

	while (e->slots[i]) {
		const struct mlk_stream *s = &e->streams[e->slots[i] - 1];

		if (s->tid == tid && s->tgid == tgid)
			break;
		i = (i + 1) & (e->nr_slots - 1);
	}
	return &e->slots[i];
}

static int grow_slots(struct mlk_encoder *e)
{
	size_t nr_slots = e->nr_slots ? e->nr_slots * 2 : 64;
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(e->slots);
	e->slots = slots;
	e->nr_slots = nr_slots;
	for (size_t i = 0; i < e->nr; i++)
		*find_slot(e, e->streams[i].tgid, e->streams[i].tid) = (uint32_t)(i + 1);
	return 0;
}

/* Write the thread's number and return its stream; NULL when out of memory. */
static struct mlk_stream *encode_thread(struct mlk_encoder *e, const struct mlk_event *ev)
{
	struct mlk_enc *col = &e->columns[MLK_COL_THREAD];
	uint32_t *slot;

	if ((e->nr + 1) * 2 > e->nr_slots && grow_slots(e))
		return NULL;
	slot = find_slot(e, ev->tgid, ev->tid);
	if (*slot) {
		mlk_enc_uvar(col, *slot);
		return &e->streams[*slot - 1];
	}
	if (!mlk_stream_add(&e->streams, &e->nr, &e->room, (uint32_t[]){ev->tgid, ev->tid}))
		return NULL;
	*slot = (uint32_t)e->nr;
	mlk_enc_uvar(col, 0);
	mlk_enc_uvar(col, ev->tgid);
	mlk_enc_uvar(col, ev->tid);
	return &e->streams[e->nr - 1];
}

/* A word by its number in the dictionary; a new one is added to it.  0 or -ENOMEM. */
static int encode_word(struct mlk_encoder *e, uint64_t word)
{
	uint32_t *number;

	if (!word) {
		mlk_enc_uvar(&e->columns[MLK_COL_WORDS], MLK_WORD_ZERO);
		return 0;
	}
	number = mlk_dict_at(&e->words, word);
	if (!number)
		return -ENOMEM;
	if (*number) {
		mlk_enc_uvar(&e->columns[MLK_COL_WORDS], *number);
		return 0;
	}
	*number = (uint32_t)(MLK_WORD_ZERO + e->words.nr);
	mlk_enc_uvar(&e->columns[MLK_COL_WORDS], MLK_WORD_NEW);
	mlk_enc_delta(&e->columns[MLK_COL_NEW], word, e->new_word);
	e->new_word = word;
	return 0;
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
			err = encode_word(e, value[r]);
	memcpy(s->regs, value, ev->nr_regs * sizeof(value[0]));
	return err;
}

/* A stack on its way into the columns. */
struct taken {
	const uint8_t *bytes; /* of lo */
	uint64_t lo, hi;      /* multiples of MLK_WORD */
	uint64_t sp;
};

static uint64_t word_at(const struct taken *t, uint64_t at)
{
	uint64_t word;

	memcpy(&word, t->bytes + (at - t->lo), sizeof(word));
	return le64toh(word);
}

/* List the words of the slice [@at, @end) that differ from the image.  Their mask, 0: none does. */
static int encode_slice(struct mlk_encoder *e, struct mlk_stream *s, const struct taken *t,
			uint64_t at, uint64_t end, uint16_t *mask)
{
	bool all = e->filter.mode == MLK_STACK_RAW;
	int err = 0;

	*mask = 0;
	for (; at < end && !err; at += MLK_WORD) {
		uint64_t word = word_at(t, at);

		if (!all && !mlk_filter_keeps(&e->filter, word, t->sp))
			word = 0;
		if (word == mlk_image_word(&s->image, at))
			continue;
		*mask |= (uint16_t)(1 << (at % MLK_BLOCK / MLK_WORD));
		mlk_image_set(&s->image, at, word);
		err = encode_word(e, word);
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

	/* The filter is another: words that were left out look changed, in all that is held. */
	if (s->epoch != e->epoch && before != &s->image)
		memcpy(mlk_image_at(before, before->lo), mlk_image_at(&s->image, before->lo),
		       (size_t)(before->hi - before->lo));
	for (uint64_t at = t->lo; at < t->hi && !err; at = end) {
		size_t len;

		end = mlk_slice_end(at, t->hi);
		len = (size_t)(end - at);
		mask = 0;
		if (memcmp(mlk_image_at(before, at), t->bytes + (at - t->lo), len)) {
			err = encode_slice(e, s, t, at, end, &mask);
			memcpy(mlk_image_at(before, at), t->bytes + (at - t->lo), len);
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

/* Slice 0 as it was, without the words that the image has already.  As bytes, for what programs
 * keep on top of their stacks comes again in runs, which zstd finds. */
static void encode_top(struct mlk_encoder *e, const struct mlk_stream *s, const struct taken *t)
{
	uint64_t end = mlk_top_end(t->lo, t->hi);
	uint8_t bytes[MLK_BLOCK];

	for (uint64_t at = t->lo; at < end; at += MLK_WORD)
		mlk_put_u64(bytes + (at - t->lo),
			    mlk_image_word(&s->image, at) ? 0 : word_at(t, at));
	mlk_enc_bytes(&e->columns[MLK_COL_TOP], bytes, (size_t)(end - t->lo));
}

/* Count what the chunk's images hold: a reader refuses more than MLK_MAX_HELD. */
static int extend(struct mlk_encoder *e, struct mlk_stream *s, const struct taken *t)
{
	uint64_t before = s->image.hi - s->image.lo;
	int err = mlk_image_extend(&s->image, t->lo, t->hi);

	if (err >= 0 && e->filter.mode != MLK_STACK_RAW)
		err = mlk_image_extend(&s->raw, t->lo, t->hi);
	e->held += s->image.hi - s->image.lo - before;
	return err < 0 ? err : 0;
}

static int encode_stack(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	uint64_t sp = ev->regs[MLK_SP_REG];
	struct taken t = {.bytes = ev->stack,
			  .sp = sp,
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
		encode_top(e, s, &t);
	free(copy);
	return err;
}

static int encode_alloc(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	uint32_t *block = mlk_dict_at(&e->blocks, ev->addr);
	int err;

	if (!block)
		return -ENOMEM;
	*block = ++e->nr_allocs;
	mlk_enc_delta(&e->columns[MLK_COL_ADDR], ev->addr, e->addr);
	mlk_enc_uvar(&e->columns[MLK_COL_SIZE], ev->size);
	mlk_enc_u8(&e->columns[MLK_COL_FUNC], ev->func);
	mlk_enc_delta(&e->columns[MLK_COL_ID], ev->alloc_id, e->alloc_id + 1);
	e->alloc_id = ev->alloc_id;
	mlk_enc_uvar(&e->columns[MLK_COL_FLAGS], ev->flags);
	err = encode_regs(e, s, ev);
	return err ? err : encode_stack(e, s, ev);
}

/* The address of a free: how many allocations ago it was given out, or 0 and a difference. */
static void encode_freed(struct mlk_encoder *e, uint64_t addr)
{
	uint32_t block = mlk_dict_get(&e->blocks, addr);

	mlk_enc_uvar(&e->columns[MLK_COL_ADDR], block ? e->nr_allocs - block + 1 : 0);
	if (!block)
		mlk_enc_delta(&e->columns[MLK_COL_ADDR], addr, e->addr);
}

static bool valid(const struct mlk_event *ev)
{
	uint64_t sp = ev->regs[MLK_SP_REG];

	if (ev->kind == 0 || ev->kind >= MLK_KIND_NR)
		return false;
	return ev->kind != MLK_ALLOC ||
	       (ev->nr_regs > MLK_SP_REG && ev->nr_regs <= MLK_MAX_REGS &&
		ev->stack_len <= MLK_MAX_STACK && sp + ev->stack_len >= sp);
}

int mlk_encoder_add(struct mlk_encoder *e, const struct mlk_event *ev)
{
	bool nested = ev->kind == MLK_FREE && ev->flags & MLK_EVENT_NESTED;
	struct mlk_stream *s;
	int err = 0;

	if (!valid(ev))
		return -EINVAL;
	mlk_enc_u8(&e->columns[MLK_COL_KIND], (uint8_t)(ev->kind | (nested ? MLK_HEAD_NESTED : 0)));
	s = encode_thread(e, ev);
	if (!s)
		return -ENOMEM;
	mlk_enc_delta(&e->columns[MLK_COL_TIME], ev->time_ns, e->time_ns);
	e->time_ns = ev->time_ns;
	if (ev->kind == MLK_ALLOC)
		err = encode_alloc(e, s, ev);
	else if (ev->kind != MLK_EXEC)
		encode_freed(e, ev->addr);
	if (ev->kind != MLK_EXEC)
		e->addr = ev->addr;
	e->bytes = 0;
	for (int i = 0; i < MLK_COL_NR; i++) {
		e->bytes += e->columns[i].len;
		if (e->columns[i].failed)
			err = -ENOMEM;
	}
	return err;
}

void mlk_encoder_forget(struct mlk_encoder *e)
{
	e->epoch++;
}

bool mlk_encoder_full(const struct mlk_encoder *e)
{
	return e->bytes >= MLK_EVENTS_TARGET || e->held >= MLK_MAX_HELD / 2;
}

void mlk_encoder_finish(struct mlk_encoder *e, struct mlk_enc *out)
{
	mlk_enc_u8(out, (uint8_t)e->filter.mode);
	mlk_enc_u8(out, MLK_COL_NR);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_uvar(out, e->columns[i].len);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_bytes(out, e->columns[i].buf, e->columns[i].len);
}
