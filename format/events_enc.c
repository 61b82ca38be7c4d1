/* events_enc.c - events to bytes: deltas, and of each stack only the blocks that changed */
#include <errno.h>
#include <stdlib.h>

#include "format/events.h"

void mlk_coder_begin(struct mlk_coder *c, uint64_t first_ns)
{
	c->time_ns = first_ns;
	c->addr = c->alloc_id = 0;
	c->nr = 0;
	if (c->slots)
		memset(c->slots, 0, c->nr_slots * sizeof(*c->slots));
}

void mlk_coder_release(struct mlk_coder *c)
{
	for (size_t i = 0; i < c->room; i++)
		mlk_image_release(&c->streams[i].image);
	free(c->streams);
	free(c->slots);
	memset(c, 0, sizeof(*c));
}

size_t mlk_coder_add(struct mlk_coder *c, uint32_t tgid, uint32_t tid)
{
	struct mlk_stream *s;

	if (c->nr == c->room) {
		size_t room = c->room ? c->room * 2 : 16;

		s = realloc(c->streams, room * sizeof(*s));
		if (!s)
			return 0;
		memset(s + c->room, 0, (room - c->room) * sizeof(*s));
		c->streams = s;
		c->room = room;
	}
	s = &c->streams[c->nr++];
	s->tgid = tgid;
	s->tid = tid;
	memset(s->regs, 0, sizeof(s->regs));
	mlk_image_reset(&s->image);
	return c->nr;
}

static uint32_t *find_slot(const struct mlk_coder *c, uint32_t tgid, uint32_t tid)
{
	size_t i = (tid * 0x9e3779b1u ^ tgid) & (c->nr_slots - 1);

	while (c->slots[i]) {
		const struct mlk_stream *s = &c->streams[c->slots[i] - 1];

		if (s->tid == tid && s->tgid == tgid)
			break;
		i = (i + 1) & (c->nr_slots - 1);
	}
	return &c->slots[i];
}

static int grow_slots(struct mlk_coder *c)
{
	size_t nr_slots = c->nr_slots ? c->nr_slots * 2 : 64;
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(c->slots);
	c->slots = slots;
	c->nr_slots = nr_slots;
	for (size_t i = 0; i < c->nr; i++)
		*find_slot(c, c->streams[i].tgid, c->streams[i].tid) = (uint32_t)(i + 1);
	return 0;
}

/* Write the thread's number and return its stream; NULL when out of memory. */
static struct mlk_stream *encode_thread(struct mlk_coder *c, struct mlk_enc *e,
					const struct mlk_event *ev)
{
	uint32_t *slot;

	if ((c->nr + 1) * 2 > c->nr_slots && grow_slots(c))
		return NULL;
	slot = find_slot(c, ev->tgid, ev->tid);
	if (*slot) {
		mlk_enc_uvar(e, *slot);
		return &c->streams[*slot - 1];
	}
	*slot = (uint32_t)mlk_coder_add(c, ev->tgid, ev->tid);
	if (!*slot)
		return NULL;
	mlk_enc_uvar(e, 0);
	mlk_enc_uvar(e, ev->tgid);
	mlk_enc_uvar(e, ev->tid);
	return &c->streams[*slot - 1];
}

static void encode_regs(struct mlk_enc *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	uint64_t mask = 0;

	for (unsigned int r = 0; r < ev->nr_regs; r++)
		if (ev->regs[r] != s->regs[r])
			mask |= 1ull << r;
	mlk_enc_u8(e, (uint8_t)ev->nr_regs);
	mlk_enc_uvar(e, mask);
	for (unsigned int r = 0; r < ev->nr_regs; r++) {
		if (!(mask >> r & 1))
			continue;
		mlk_enc_delta(e, ev->regs[r], s->regs[r]);
		s->regs[r] = ev->regs[r];
	}
}

/* Is the block [@at, @end) already in the image's range [@held_lo, @held_hi), with these bytes? */
static bool block_known(const struct mlk_image *im, const struct mlk_event *ev, uint64_t at,
			uint64_t end, const uint64_t held[2])
{
	uint64_t sp = ev->regs[MLK_SP_REG];

	return at >= held[0] && end <= held[1] &&
	       mlk_image_equal(im, at, ev->stack + (at - sp), (size_t)(end - at));
}

static int encode_stack(struct mlk_enc *e, struct mlk_stream *s, const struct mlk_event *ev)
{
	uint64_t lo = ev->regs[MLK_SP_REG], hi = lo + ev->stack_len, held[2], end;
	uint64_t changed[MLK_MAX_STACK / MLK_BLOCK / 64 + 1] = {0};
	unsigned int nr_changed = 0, block = 0, gap = 0;
	int err;

	mlk_enc_uvar(e, ev->stack_len);
	if (!ev->stack_len)
		return 0;
	err = mlk_image_extend(&s->image, lo, hi, &held[0], &held[1]);
	if (err)
		return err;
	for (uint64_t at = lo; at < hi; at = end, block++) {
		end = mlk_block_end(at, hi);
		if (block_known(&s->image, ev, at, end, held))
			continue;
		changed[block / 64] |= 1ull << block % 64;
		nr_changed++;
	}
	mlk_enc_uvar(e, nr_changed);
	block = 0;
	for (uint64_t at = lo; at < hi; at = end, block++) {
		end = mlk_block_end(at, hi);
		if (!(changed[block / 64] >> block % 64 & 1)) {
			gap++;
			continue;
		}
		mlk_enc_uvar(e, gap);
		mlk_enc_bytes(e, ev->stack + (at - lo), (size_t)(end - at));
		mlk_image_put(&s->image, at, ev->stack + (at - lo), (size_t)(end - at));
		gap = 0;
	}
	return 0;
}

static int encode_alloc(struct mlk_coder *c, struct mlk_enc *e, struct mlk_stream *s,
			const struct mlk_event *ev)
{
	mlk_enc_uvar(e, ev->size);
	mlk_enc_u8(e, ev->func);
	mlk_enc_delta(e, ev->alloc_id, c->alloc_id);
	c->alloc_id = ev->alloc_id;
	mlk_enc_uvar(e, ev->flags);
	encode_regs(e, s, ev);
	return encode_stack(e, s, ev);
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

int mlk_events_encode(struct mlk_coder *c, struct mlk_enc *e, const struct mlk_event *ev)
{
	bool nested = ev->kind == MLK_FREE && ev->flags & MLK_EVENT_NESTED;
	struct mlk_stream *s;
	int err = 0;

	if (!valid(ev))
		return -EINVAL;
	mlk_enc_u8(e, (uint8_t)(ev->kind | (nested ? MLK_HEAD_NESTED : 0)));
	s = encode_thread(c, e, ev);
	if (!s)
		return -ENOMEM;
	mlk_enc_delta(e, ev->time_ns, c->time_ns);
	c->time_ns = ev->time_ns;
	if (ev->kind != MLK_EXEC) {
		mlk_enc_delta(e, ev->addr, c->addr);
		c->addr = ev->addr;
	}
	if (ev->kind == MLK_ALLOC)
		err = encode_alloc(c, e, s, ev);
	return e->failed ? -ENOMEM : err;
}
