/* stack_history.c - see stack_history.h */
#include "report/decode/stack_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

#define MAX_THREADS 16384	 /* a damaged trace may name any number */
#define MAX_BYTES   (256u << 20) /* of all stacks together */
#define MAX_STACK   (4u << 20)	 /* of one: a cut stack and what lies above it */
#define SEAM	    32		 /* words by which both are recognised as of the same calls */

/* The bytes [addr, end), which are at the end of their room: a stack's end changes seldom. */
struct image {
	uint32_t tgid, tid;
	uint64_t addr, end;
	uint8_t *bytes;
	size_t room;
	bool known; /* whatever there was before */
};

struct stack_history {
	INTERN_OF(struct image);
	size_t last;	     /* the one requested last */
	size_t bytes;	     /* in the rooms of all */
	uint32_t *forgotten; /* processes, of which nothing from before is left */
	size_t nr_forgotten, forgotten_room;
	stack_history_before *before;
	void *before_arg;
};

int stack_history_new(struct stack_history **out, stack_history_before *before, void *arg)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->before = before;
	(*out)->before_arg = arg;
	return 0;
}

static struct image *image_of(struct stack_history *p, uint32_t tgid, uint32_t tid)
{
	const struct image empty = {.tgid = tgid, .tid = tid};
	uint32_t number;

	if (p->nr && p->all[p->last].tgid == tgid && p->all[p->last].tid == tid)
		return &p->all[p->last];
	if (p->nr < MAX_THREADS ? intern_pair(&p->table, &empty, sizeof(empty), &number) < 0
				: !intern_find_pair(&p->table, &empty, sizeof(empty), &number))
		return NULL;
	p->last = number;
	return &p->all[number];
}

static uint8_t *at(const struct image *image, uint64_t addr)
{
	return image->bytes + image->room - (image->end - addr);
}

/* Have room for @len bytes below the image's end.  False: there is no memory. */
static bool make_image_room(struct stack_history *p, struct image *image, uint64_t len)
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

/* Nothing is known of the thread's stack, and its memory is another's. */
static void release(struct stack_history *p, struct image *image)
{
	p->bytes -= image->room;
	free(image->bytes);
	image->bytes = NULL;
	image->room = 0;
	image->addr = image->end;
}

static bool is_forgotten(const struct stack_history *p, uint32_t tgid)
{
	for (size_t i = 0; i < p->nr_forgotten; i++)
		if (p->forgotten[i] == tgid)
			return true;
	return false;
}

/* Make known what the thread of @event had before all that was given to @p.  Returns its image,
 * which may have moved. */
static struct image *look_back_for(struct stack_history *p, struct image *image,
				   const struct mlk_event *event)
{
	image->known = true;
	if (!p->before || is_forgotten(p, event->tgid))
		return image;
	p->before(p->before_arg, p, event);
	return image_of(p, event->tgid, event->tid);
}

static bool is_cut(const struct mlk_event *event)
{
	return event->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED);
}

/* Lay the stack of @event, up to @to, over the image, which it overlaps or touches from below or
 * which has the same end. */
static bool lay_over(struct stack_history *p, struct image *image, const struct mlk_event *event,
		     uint64_t to)
{
	uint64_t sp = event->regs[MLK_SP_REG];

	if (!make_image_room(p, image, image->end - sp)) {
		image->addr = image->end;
		return false;
	}
	image->addr = sp;
	if (to > sp)
		memcpy(at(image, sp), event->stack, to - sp);
	return true;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/*
 * Was the thread in the same calls when it had what @image has above @event's stack?  Calls that
 * have not returned leave their words as they are.  So the uppermost ones that both have must be
 * equal; zeros tell nothing, as a trace has them for all that no unwinder needs, and those of the
 * lowest quarter may well have returned.  A short stack has little but such.
 */
static bool same_calls(const struct image *image, const struct mlk_event *event)
{
	uint64_t sp = event->regs[MLK_SP_REG], to = sp + event->stack_len;
	uint64_t low = sp + event->stack_len / 4, from = image->addr > low ? image->addr : low;
	unsigned int left = SEAM;

	for (; left && to - from >= sizeof(uint64_t); to -= sizeof(uint64_t)) {
		uint64_t now = word_at(event->stack + (to - sp) - sizeof(now));
		uint64_t then = word_at(at(image, to) - sizeof(then));

		if (now != then)
			return false;
		left -= now != 0;
	}
	return true;
}

/* Does what @image has continue the stack of @event, which ends at @end? */
static bool continues(const struct image *image, const struct mlk_event *event, uint64_t end)
{
	return is_cut(event) && image->addr <= end && end < image->end &&
	       image->end - event->regs[MLK_SP_REG] <= MAX_STACK &&
	       (event->stack_len < MLK_MAX_STACK / 2 || same_calls(image, event));
}

bool stack_history_pop(struct stack_history *p, const struct mlk_event *event,
		       struct dwunw_stack *stack, uint64_t *stale_from)
{
	uint64_t sp = event->regs[MLK_SP_REG], end = sp + event->stack_len;
	uint64_t same_from = event->stack_same_from > sp ? event->stack_same_from : sp;
	struct image *image = image_of(p, event->tgid, event->tid);

	if (!image || end < sp)
		return false;
	if (!image->known && is_cut(event))
		image = look_back_for(p, image, event);
	image->known = true; /* what is not cut is told whole by itself */
	if (continues(image, event, end)) {
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

void stack_history_forget(struct stack_history *p, uint32_t tgid)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->all[i].tgid == tgid)
			release(p, &p->all[i]);
	if (p->before && !is_forgotten(p, tgid))
		(void)array_append(&p->forgotten, &p->nr_forgotten, &p->forgotten_room, &tgid,
				   sizeof(tgid));
}

/* Of which process the images are released. */
struct ended {
	struct stack_history *history;
	uint32_t tgid;
};

static bool keep_image(void *arg, void *thing)
{
	const struct ended *ended = arg;
	struct image *image = thing;

	if (image->tgid != ended->tgid)
		return true;
	release(ended->history, image);
	return false;
}

void stack_history_end(struct stack_history *p, uint32_t tgid)
{
	struct ended ended = {p, tgid};

	intern_keep_pairs(&p->table, sizeof(struct image), keep_image, &ended);
	p->last = 0;
}

void stack_history_copy(struct stack_history *to, const struct stack_history *from,
			const struct mlk_event *event)
{
	const uint32_t thread[] = {event->tgid, event->tid};
	const struct image *there;
	struct image *image;
	uint32_t number;

	if (!intern_find_pair(&from->table, thread, sizeof(*there), &number))
		return;
	there = &from->all[number];
	image = image_of(to, event->tgid, event->tid);
	if (!image || there->addr == there->end)
		return;
	image->addr = image->end = there->end;
	if (!make_image_room(to, image, there->end - there->addr))
		return;
	image->addr = there->addr;
	memcpy(at(image, image->addr), at(there, there->addr), image->end - image->addr);
}

static void swap_bytes(struct image *a, struct image *b)
{
	uint8_t *bytes = a->bytes;
	size_t room = a->room;

	a->bytes = b->bytes;
	a->room = b->room;
	b->bytes = bytes;
	b->room = room;
}

/* @image of @from is the last that is known of its thread. */
static void take_over(struct stack_history *to, struct stack_history *from, struct image *image)
{
	struct image *old = image_of(to, image->tgid, image->tid);

	if (!old)
		return;
	old->addr = old->end;
	if (to->bytes - old->room + image->room > MAX_BYTES)
		return;
	to->bytes += image->room - old->room;
	from->bytes -= image->room - old->room;
	swap_bytes(old, image);
	old->addr = image->addr;
	old->end = image->end;
	old->known = true;
}

void stack_history_clear(struct stack_history *p)
{
	for (size_t i = 0; i < p->nr; i++)
		free(p->all[i].bytes);
	intern_release(&p->table);
	p->last = p->bytes = p->nr_forgotten = 0;
}

void stack_history_absorb(struct stack_history *to, struct stack_history *from)
{
	for (size_t i = 0; i < from->nr_forgotten; i++)
		stack_history_forget(to, from->forgotten[i]);
	for (size_t i = 0; i < from->nr; i++)
		if (from->all[i].known)
			take_over(to, from, &from->all[i]);
	stack_history_clear(from);
}

void stack_history_free(struct stack_history *p)
{
	if (!p)
		return;
	stack_history_clear(p);
	free(p->forgotten);
	free(p);
}
