/* address_history.c - see address_history.h */
#include "report/live/address_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/live/live_around.h"

int address_history_new(struct address_history **out, uint64_t addr)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->addr = addr;
	return 0;
}

/* The place of process @number.  NULL: no memory. */
static struct holder *place_of(struct address_history *holders, size_t number)
{
	return array_cover(&holders->all, &holders->nr, number + 1, sizeof(*holders->all))
		       ? NULL
		       : &holders->all[number];
}

static void end_it(struct holder *h, const struct mlk_event *event, enum holder_end end)
{
	h->end = end;
	h->end_tid = event->tid;
	h->end_ns = event->time_ns;
}

static void begin_it(struct holder *h, const struct mlk_event *event, uint32_t stack)
{
	*h = (struct holder){
		.any = true,
		.block = live_block_of(event, stack),
		.func = event->func,
	};
}

/* What @event, of its process, does to the block that holds @addr. */
static void change(struct holder *h, uint64_t addr, const struct mlk_event *event)
{
	bool lives = h->any && h->end == HOLDER_LIVES, same = event->addr == h->block.addr;

	switch (event->kind) {
	case MLK_FREE:
		if (lives && same)
			end_it(h, event, HOLDER_FREED);
		return;
	case MLK_RELEASE:
		if (lives && same)
			end_it(h, event, HOLDER_REALLOCATED);
		return;
	case MLK_UNMAP:
		if (lives && h->block.mapped && addr - event->addr < event->size)
			end_it(h, event, HOLDER_UNMAPPED);
		return;
	case MLK_RESTORE:
		if (h->any && event->tid == h->end_tid &&
		    (h->end == HOLDER_UNMAPPED || (h->end == HOLDER_REALLOCATED && same)))
			h->end = HOLDER_LIVES;
		return;
	case MLK_EXEC:
		if (lives)
			end_it(h, event, HOLDER_GONE);
		return;
	default:
		return;
	}
}

static int inherit(struct address_history *holders, struct live *live,
		   const struct mlk_event *event)
{
	uint32_t child, parent;
	struct holder *h;
	int err = live_process_number(live, (uint32_t)event->addr, &parent);

	if (!err)
		err = live_process_number(live, event->tgid, &child);
	if (err)
		return err;
	h = place_of(holders, child);
	if (!h)
		return -ENOMEM;
	*h = address_history_get(holders, parent);
	h->inherited = true;
	return 0;
}

int address_history_event(struct address_history *holders, struct live *live,
			  const struct mlk_event *event, uint32_t stack)
{
	const struct live_block given = {.addr = event->addr, .size = event->size};
	struct holder *h;
	uint32_t process;
	int err;

	/* a process that has ended is not searched for: that would begin anew */
	if (event->kind == MLK_EXIT)
		return 0;
	if (event->kind == MLK_FORK)
		return inherit(holders, live, event);
	err = live_process_number(live, event->tgid, &process);
	if (err)
		return err;
	h = place_of(holders, process);
	if (!h)
		return -ENOMEM;
	if (event->kind != MLK_ALLOC)
		change(h, holders->addr, event);
	else if (live_holds(&given, holders->addr))
		begin_it(h, event, stack);
	else if (h->any && h->end == HOLDER_LIVES && event->addr == h->block.addr)
		end_it(h, event, HOLDER_FREED); /* that it was freed was not seen */
	return 0;
}

struct holder address_history_get(const struct address_history *holders, size_t process)
{
	return process < holders->nr ? holders->all[process] : (struct holder){0};
}

void address_history_free(struct address_history *holders)
{
	if (!holders)
		return;
	free(holders->all);
	free(holders);
}
