/* process_events.c - a queue, in the order of their times */
#include "record/preload/process/process_events.h"

#include <string.h>

bool process_events_full(const struct process_events *hs)
{
	return hs->nr == HAPPENINGS_MAX;
}

struct happening *process_events_add(struct process_events *hs)
{
	return process_events_full(hs) ? NULL : &hs->all[hs->nr++];
}

void process_events_withdraw(struct process_events *hs)
{
	maps_release(&hs->all[--hs->nr].maps);
}

const struct happening *process_events_first(const struct process_events *hs)
{
	return hs->nr ? &hs->all[0] : NULL;
}

void process_events_report(struct process_events *hs, const struct preload_sink *sink,
			   struct preload_clock *clock)
{
	struct happening *h = &hs->all[0];
	uint64_t time_ns = preload_clock_ns(clock, h->time);

	if (h->kind == HAPPENING_CAME)
		sink->came(sink->ctx, time_ns, h->pid, &h->maps);
	else if (h->kind == HAPPENING_MAPPED)
		sink->mapped(sink->ctx, time_ns, h->pid, &h->maps);
	else
		sink->ended(sink->ctx, time_ns, h->pid);
}

void process_events_drop(struct process_events *hs)
{
	struct happening *h = &hs->all[0];

	maps_release(&h->maps);
	memmove(h, h + 1, sizeof(*h) * --hs->nr);
}

void process_events_release(struct process_events *hs)
{
	while (hs->nr)
		process_events_withdraw(hs);
}
