/* events_dec.c - bytes to events; nothing here is believed before it is checked */
#include <errno.h>

#include "format/events.h"

static struct mlk_stream *decode_thread(struct mlk_coder *c, struct mlk_dec *d)
{
	uint64_t number = mlk_dec_uvar_max(d, c->nr);
	uint32_t tgid, tid;

	if (d->bad)
		return NULL;
	if (number)
		return &c->streams[number - 1];
	tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	tid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	number = mlk_coder_add(c, tgid, tid);
	return number ? &c->streams[number - 1] : NULL;
}

static void decode_regs(struct mlk_dec *d, struct mlk_stream *s, struct mlk_event *ev)
{
	uint64_t mask;

	ev->nr_regs = mlk_dec_u8(d);
	if (ev->nr_regs <= MLK_SP_REG || ev->nr_regs > MLK_MAX_REGS) {
		d->bad = true;
		return;
	}
	mask = mlk_dec_uvar_max(d, (1ull << ev->nr_regs) - 1);
	for (unsigned int r = 0; r < MLK_MAX_REGS; r++)
		if (mask >> r & 1)
			s->regs[r] = mlk_dec_delta(d, s->regs[r]);
	memcpy(ev->regs, s->regs, sizeof(ev->regs));
}

/* Put the next listed block, which begins at @at and ends at @end, into the image. */
static void take_block(struct mlk_dec *d, struct mlk_image *im, uint64_t at, uint64_t end)
{
	const uint8_t *bytes = mlk_dec_bytes(d, end - at);

	if (bytes)
		mlk_image_put(im, at, bytes, (size_t)(end - at));
}

/* Go through the blocks of [@lo, @hi): those listed are read, the others must be held. */
static void decode_blocks(struct mlk_dec *d, struct mlk_image *im, uint64_t lo, uint64_t hi,
			  const uint64_t held[2])
{
	const uint64_t most = MLK_MAX_STACK / MLK_BLOCK + 1;
	uint64_t listed = mlk_dec_uvar_max(d, most);
	uint64_t gap = listed ? mlk_dec_uvar_max(d, most) : 0, end;

	for (uint64_t at = lo; at < hi && !d->bad; at = end) {
		end = mlk_block_end(at, hi);
		if (!listed || gap) {
			d->bad |= at < held[0] || end > held[1];
			gap -= gap ? 1 : 0;
			continue;
		}
		take_block(d, im, at, end);
		listed--;
		gap = listed ? mlk_dec_uvar_max(d, most) : 0;
	}
	d->bad |= listed || gap; /* more blocks than the stack has */
}

static int decode_stack(struct mlk_dec *d, struct mlk_stream *s, struct mlk_event *ev,
			uint8_t *stack)
{
	uint64_t lo = s->regs[MLK_SP_REG], hi, held[2];
	int err;

	ev->stack_len = (uint32_t)mlk_dec_uvar_max(d, MLK_MAX_STACK);
	ev->stack = stack;
	d->bad |= __builtin_add_overflow(lo, ev->stack_len, &hi);
	if (d->bad || !ev->stack_len)
		return 0;
	err = mlk_image_extend(&s->image, lo, hi, &held[0], &held[1]);
	if (err)
		return err;
	decode_blocks(d, &s->image, lo, hi, held);
	if (!d->bad)
		mlk_image_get(&s->image, lo, stack, ev->stack_len);
	return 0;
}

static int decode_alloc(struct mlk_coder *c, struct mlk_dec *d, struct mlk_stream *s,
			struct mlk_event *ev, uint8_t *stack)
{
	ev->size = mlk_dec_uvar(d);
	ev->func = mlk_dec_u8(d);
	ev->alloc_id = c->alloc_id = mlk_dec_delta(d, c->alloc_id);
	ev->flags = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	decode_regs(d, s, ev);
	return decode_stack(d, s, ev, stack);
}

int mlk_events_decode(struct mlk_coder *c, struct mlk_dec *d, struct mlk_event *ev, uint8_t *stack)
{
	uint8_t head = mlk_dec_u8(d);
	struct mlk_stream *s;
	int err = 0;

	memset(ev, 0, sizeof(*ev));
	ev->kind = head & MLK_HEAD_KIND;
	if (!ev->kind || ev->kind >= MLK_KIND_NR || head & ~(MLK_HEAD_KIND | MLK_HEAD_NESTED))
		return MLK_E_CORRUPT;
	if (head & MLK_HEAD_NESTED)
		ev->flags = MLK_EVENT_NESTED;
	s = decode_thread(c, d);
	if (!s)
		return d->bad ? MLK_E_CORRUPT : -ENOMEM;
	ev->tgid = s->tgid;
	ev->tid = s->tid;
	ev->time_ns = c->time_ns = mlk_dec_delta(d, c->time_ns);
	if (ev->kind != MLK_EXEC)
		ev->addr = c->addr = mlk_dec_delta(d, c->addr);
	if (ev->kind == MLK_ALLOC)
		err = decode_alloc(c, d, s, ev, stack);
	return d->bad ? MLK_E_CORRUPT : err;
}
