/* events_enc.c - events to columns: differences to the events before; and what is kept of them */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"

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
	e->nr = 0;
	e->bytes = e->held = e->nr_waiting = 0;
	for (int i = 0; i < MLK_COL_NR; i++)
		e->columns[i].len = 0;
	mlk_dict_reset(&e->threads);
	mlk_dict_reset(&e->words);
	mlk_predict_reset(&e->predict);
	mlk_dict_reset(&e->blocks);
	mlk_reuse_begin(&e->reuse);
	mlk_frames_enc_begin(&e->frames);
	trim_images(e);
}

void mlk_encoder_release(struct mlk_encoder *e)
{
	mlk_streams_trim(e->streams, e->room);
	for (int i = 0; i < MLK_COL_NR; i++)
		mlk_enc_release(&e->columns[i]);
	mlk_dict_release(&e->threads);
	mlk_dict_release(&e->words);
	mlk_dict_release(&e->blocks);
	mlk_reuse_release(&e->reuse);
	mlk_frames_enc_release(&e->frames);
	free(e->streams);
	memset(e, 0, sizeof(*e));
}

/* Write the thread's number and return its stream; NULL when out of memory. */
static struct mlk_stream *encode_thread(struct mlk_encoder *e, const struct mlk_event *ev)
{
	struct mlk_enc *col = &e->columns[MLK_COL_THREAD];
	uint32_t *slot;

	slot = mlk_dict_at(&e->threads, (uint64_t)ev->tgid << 32 | ev->tid);
	if (!slot)
		return NULL;
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

/* The head of @ev, which tells where it is if that was expected. */
static uint8_t encode_head(struct mlk_encoder *e, const struct mlk_event *ev)
{
	struct mlk_expected expected;
	uint8_t head = ev->kind;

	if (ev->kind == MLK_FREE && ev->flags & MLK_EVENT_NESTED)
		head |= MLK_HEAD_NESTED;
	if (ev->kind == MLK_ALLOC) {
		mlk_dict_expect(&e->blocks, ev->addr);
		expected = mlk_reuse_expect(&e->reuse, ev->size);
		if (ev->addr == expected.first)
			head |= MLK_HEAD_FIRST;
		else if (ev->addr == expected.second)
			head |= MLK_HEAD_SECOND;
	}
	mlk_enc_u8(&e->columns[MLK_COL_KIND], head);
	return head;
}

static int encode_alloc(struct mlk_encoder *e, struct mlk_stream *s, uint8_t head,
			const struct mlk_event *ev)
{
	uint32_t *block;
	int err;

	if (!(head & (MLK_HEAD_FIRST | MLK_HEAD_SECOND)))
		mlk_enc_delta(&e->columns[MLK_COL_ADDR], ev->addr, e->addr);
	e->addr = ev->addr;
	mlk_encode_came(e, ev->addr);
	mlk_enc_uvar(&e->columns[MLK_COL_SIZE], ev->size);
	mlk_enc_u8(&e->columns[MLK_COL_FUNC], ev->func);
	mlk_enc_delta(&e->columns[MLK_COL_ID], ev->alloc_id, e->alloc_id + 1);
	e->alloc_id = ev->alloc_id;
	mlk_enc_uvar(&e->columns[MLK_COL_FLAGS], ev->flags);
	err = mlk_encode_stack(e, s, ev);
	if (!err)
		err = mlk_frames_encode(&e->frames, &e->columns[MLK_COL_FRAMES],
					&e->columns[MLK_COL_FRAME_STACKS], ev);
	if (err)
		return err;
	block = mlk_dict_at(&e->blocks, ev->addr);
	if (!block || mlk_reuse_add(&e->reuse, ev->addr, ev->size))
		return -ENOMEM;
	*block = (uint32_t)e->reuse.nr;
	return 0;
}

/* The address of a free: how many allocations ago it was allocated, or 0 and a difference. */
static void encode_freed(struct mlk_encoder *e, const struct mlk_event *ev)
{
	uint32_t block = mlk_dict_get(&e->blocks, ev->addr);

	mlk_enc_uvar(&e->columns[MLK_COL_ADDR], block ? e->reuse.nr - block + 1 : 0);
	if (!block)
		mlk_enc_delta(&e->columns[MLK_COL_ADDR], ev->addr, e->addr);
	else if (mlk_kind_frees(ev->kind))
		mlk_reuse_freed(&e->reuse, block);
	e->addr = ev->addr;
	mlk_encode_came(e, ev->addr);
}

/* What has no registers and no stack. */
static void encode_other(struct mlk_encoder *e, const struct mlk_event *ev)
{
	if (mlk_kind_has_addr(ev->kind))
		encode_freed(e, ev);
	if (ev->kind == MLK_PAGES)
		mlk_enc_u8(&e->columns[MLK_COL_FUNC], ev->func);
	if (mlk_kind_has_range(ev->kind))
		mlk_enc_uvar(&e->columns[MLK_COL_SIZE], ev->size);
	else if (ev->kind == MLK_FORK)
		mlk_enc_uvar(&e->columns[MLK_COL_SIZE], ev->addr);
}

/* The low byte of a difference is noise; what is above it repeats, so they are separate. */
static void encode_time(struct mlk_encoder *e, uint64_t time_ns)
{
	uint64_t delta = time_ns - e->time_ns;
	uint64_t high = delta >> 8 | (delta >> 63 ? 0xffull << 56 : 0);

	mlk_enc_u8(&e->columns[MLK_COL_TIME], (uint8_t)delta);
	mlk_enc_delta(&e->columns[MLK_COL_TIME_HIGH], high, 0);
	e->time_ns = time_ns;
}

static bool valid(const struct mlk_event *ev)
{
	uint64_t sp = ev->regs[MLK_SP_REG];

	if (ev->kind == 0 || ev->kind >= MLK_KIND_NR)
		return false;
	return ev->kind != MLK_ALLOC ||
	       (ev->nr_regs > MLK_SP_REG && ev->nr_regs <= MLK_MAX_REGS &&
		ev->stack_len <= MLK_MAX_STACK && sp + ev->stack_len >= sp &&
		ev->nr_frames <= MLK_MAX_CODE_FRAMES);
}

int mlk_encoder_add(struct mlk_encoder *e, const struct mlk_event *ev)
{
	struct mlk_stream *s;
	uint8_t head;
	int err = 0;

	if (!valid(ev))
		return -EINVAL;
	head = encode_head(e, ev);
	s = encode_thread(e, ev);
	if (!s)
		return -ENOMEM;
	encode_time(e, ev->time_ns);
	if (ev->kind == MLK_ALLOC)
		err = encode_alloc(e, s, head, ev);
	else
		encode_other(e, ev);
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
	return e->bytes >= MLK_EVENTS_TARGET || e->held >= MLK_MAX_HELD / 2 ||
	       e->nr >= MLK_MAX_STREAMS;
}

void mlk_encoder_finish(struct mlk_encoder *e, struct mlk_enc *out)
{
	mlk_enc_u8(out, (uint8_t)(e->filter.mode | MLK_CODING_4 << 4));
	/* those of frames only where there are any */
	mlk_enc_columns(out, e->columns, e->frames.begun ? MLK_COL_NR : MLK_COL_NR_1);
}

/* Take the two ranges with the least gap between them together. */
static void merge_nearest(struct mlk_filter *f)
{
	unsigned int best = 1;

	for (unsigned int i = 2; i < f->nr; i++)
		if (f->code[i].start - f->code[i - 1].end <
		    f->code[best].start - f->code[best - 1].end)
			best = i;
	f->code[best - 1].end = f->code[best].end;
	f->nr--;
	memmove(&f->code[best], &f->code[best + 1], (f->nr - best) * sizeof(f->code[0]));
}

void mlk_filter_set_code(struct mlk_filter *f, const struct mlk_mapping *mappings, size_t nr)
{
	f->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!(mappings[i].perms & MLK_PERM_X))
			continue;
		if (f->nr == MLK_FILTER_SPANS)
			merge_nearest(f);
		f->code[f->nr].start = mappings[i].start;
		f->code[f->nr++].end = mappings[i].end;
	}
}
