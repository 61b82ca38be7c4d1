/* previous.c - see previous.h */
#include "report/previous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"

#define MAX_THREADS 16384		/* a damaged trace may name any number */
#define MAX_BYTES   (256u << 20)	/* of all stacks together */
#define MAX_STACK   (2 * MLK_MAX_STACK) /* of one: a cut stack and what lies above it */

/* The bytes [addr, end), which stand at the end of their room: a stack's end changes seldom. */
struct image {
	uint32_t tgid, tid;
	uint64_t addr, end;
	uint8_t *bytes;
	size_t room;
};

struct previous {
	struct image *all;
	size_t nr, room;
	size_t last;  /* the one asked for last */
	size_t bytes; /* in the rooms of all */
	struct hash_index index;
};

int previous_new(struct previous **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_thread(const void *things, uint32_t number, const void *arg)
{
	const struct image *image = &((const struct previous *)things)->all[number];
	const struct mlk_event *key = arg;

	return image->tgid == key->tgid && image->tid == key->tid;
}

static struct image *add(struct previous *p, const struct mlk_event *event, uint64_t hash)
{
	struct image *all;

	if (p->nr >= MAX_THREADS)
		return NULL;
	all = array_grow(p->all, &p->room, p->nr + 1, sizeof(*all));
	if (!all)
		return NULL;
	p->all = all;
	if (hash_index_add(&p->index, hash, (uint32_t)p->nr))
		return NULL;
	p->last = p->nr++;
	all[p->last] = (struct image){.tgid = event->tgid, .tid = event->tid};
	return &all[p->last];
}

static struct image *image_of(struct previous *p, const struct mlk_event *event)
{
	struct hash_query query = {.hash = hash_word(event->tgid, event->tid),
				   .things = p,
				   .key = event,
				   .equal = same_thread};
	uint32_t number;

	if (p->nr && same_thread(p, (uint32_t)p->last, event))
		return &p->all[p->last];
	if (!hash_index_find(&p->index, &query, &number))
		return add(p, event, query.hash);
	p->last = number;
	return &p->all[number];
}

static uint8_t *at(const struct image *image, uint64_t addr)
{
	return image->bytes + image->room - (image->end - addr);
}

/* Have room for @len bytes below the image's end.  False: there is no memory. */
static bool make_room(struct previous *p, struct image *image, uint64_t len)
{
	uint64_t kept = image->end - image->addr;
	size_t room = image->room ? image->room : 4096;
	uint8_t *bytes;

	if (len <= image->room)
		return true;
	while (room < len)
		room *= 2;
	if (p->bytes - image->room + room > MAX_BYTES)
		return false;
	bytes = malloc(room);
	if (!bytes)
		return false;
	if (kept)
		memcpy(bytes + room - kept, at(image, image->addr), kept);
	p->bytes += room - image->room;
	free(image->bytes);
	image->bytes = bytes;
	image->room = room;
	return true;
}

static bool is_cut(const struct mlk_event *event)
{
	return event->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED);
}

/* Lay the stack of @event, up to @to, over the image, which it overlaps or touches from below or
 * which has the same end. */
static bool lay_over(struct previous *p, struct image *image, const struct mlk_event *event,
		     uint64_t to)
{
	uint64_t sp = event->regs[MLK_SP_REG];

	if (!make_room(p, image, image->end - sp)) {
		image->addr = image->end;
		return false;
	}
	image->addr = sp;
	if (to > sp)
		memcpy(at(image, sp), event->stack, to - sp);
	return true;
}

bool previous_take(struct previous *p, const struct mlk_event *event, struct dwunw_stack *stack,
		   uint64_t *stale_from)
{
	uint64_t sp = event->regs[MLK_SP_REG], end = sp + event->stack_len;
	uint64_t same_from = event->stack_same_from > sp ? event->stack_same_from : sp;
	struct image *image = image_of(p, event);

	if (!image || end < sp)
		return false;
	if (is_cut(event) && image->addr <= end && end < image->end &&
	    image->end - sp <= MAX_STACK) {
		if (!lay_over(p, image, event, end))
			return false;
		*stack = (struct dwunw_stack){
			.addr = sp, .bytes = at(image, sp), .len = (size_t)(image->end - sp)};
		*stale_from = end;
		return true;
	}
	/* most often little has changed, and that at the bottom */
	if (image->end == end && image->addr <= same_from && same_from < end) {
		lay_over(p, image, event, same_from);
	} else {
		image->addr = image->end = end;
		lay_over(p, image, event, end);
	}
	return false;
}

void previous_forget(struct previous *p, uint32_t tgid)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->all[i].tgid == tgid)
			p->all[i].addr = p->all[i].end;
}

void previous_free(struct previous *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr; i++)
		free(p->all[i].bytes);
	hash_index_release(&p->index);
	free(p->all);
	free(p);
}
