/* overrun_list.c - see overrun_list.h */
#include "record/trace/overrun_list.h"

#include <string.h>

_Static_assert((int)OVERRUN_AT_FREE == MLK_FOUND_FREE &&
		       (int)OVERRUN_AT_REALLOC == MLK_FOUND_REALLOC &&
		       (int)OVERRUN_AT_EXIT == MLK_FOUND_EXIT &&
		       (int)OVERRUN_AT_EXEC == MLK_FOUND_EXEC,
	       "the library's numbers are the trace's");
_Static_assert(OVERRUN_BYTES <= MLK_MAX_OVERRUN, "all of it fits into the trace");

/* The place of thread @id among those that wait, or o->nr. */
static size_t find(const struct overrun_list *o, uint64_t id)
{
	size_t i = 0;

	while (i < o->nr && o->waiting[i].id != id)
		i++;
	return i;
}

/* Write the @i-th, and take it out. */
static int put(struct overrun_list *o, struct mlk_writer *w, size_t i)
{
	int err;

	o->waiting[i].overrun.bytes = o->waiting[i].bytes;
	err = mlk_writer_overrun(w, &o->waiting[i].overrun);
	o->waiting[i] = o->waiting[--o->nr];
	return err;
}

int overrun_list_add(struct overrun_list *o, struct mlk_writer *w,
		     const struct event_overrun *event, uint64_t time_ns)
{
	size_t i = find(o, event->block.id);
	struct overrun_list_waiting *waiting;
	int err = i < o->nr ? put(o, w, i) : 0;

	if (!err && o->nr == OVERRUNS_WAITING)
		err = put(o, w, 0);
	o->found++;
	waiting = &o->waiting[o->nr++];
	waiting->id = event->block.id;
	waiting->overrun = (struct mlk_overrun){
		.at = {.kind = MLK_ALLOC,
		       .nr_regs = DWUNW_MAX_ARCH_REGS,
		       .tgid = event_tgid(event->block.id),
		       .tid = event_tid(event->block.id),
		       .time_ns = time_ns,
		       .addr = event->block.addr,
		       .size = event->block.value},
		.found = (uint8_t)event->overrun.found,
		.offset = event->overrun.offset,
		.len = event->overrun.len,
		.changed = event->overrun.changed,
	};
	memcpy(waiting->bytes, event->overrun.bytes, sizeof(waiting->bytes));
	return err;
}

int overrun_list_write(struct overrun_list *o, struct mlk_writer *w, const struct mlk_event *stack)
{
	size_t i = find(o, (uint64_t)stack->tgid << 32 | stack->tid);
	struct mlk_event *at;

	if (i == o->nr || o->waiting[i].overrun.at.addr != stack->addr)
		return 0; /* what was found was lost */
	at = &o->waiting[i].overrun.at;
	at->flags = stack->flags;
	at->time_ns = stack->time_ns;
	memcpy(at->regs, stack->regs, sizeof(at->regs));
	at->stack = stack->stack;
	at->stack_len = stack->stack_len;
	return put(o, w, i);
}

int overrun_list_flush(struct overrun_list *o, struct mlk_writer *w)
{
	int err = 0;

	while (!err && o->nr)
		err = put(o, w, 0);
	return err;
}
