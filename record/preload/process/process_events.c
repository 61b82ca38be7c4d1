/* process_events.c - a queue, in the order of their times */
#include "record/preload/process/process_events.h"

#include <string.h>

bool happenings_full(const struct happenings *hs)
{
	return hs->nr == HAPPENINGS_MAX;
}

struct happening *happenings_add(struct happenings *hs)
{
	return happenings_full(hs) ? NULL : &hs->all[hs->nr++];
}

void happenings_take_back(struct happenings *hs)
{
	maps_release(&hs->all[--hs->nr].maps);
}

const struct happening *happenings_first(const struct happenings *hs)
{
	return hs->nr ? &hs->all[0] : NULL;
}

void happenings_tell(struct happenings *hs, const struct preload_sink *sink,
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

void happenings_drop(struct happenings *hs)
{
	struct happening *h = &hs->all[0];

	maps_release(&h->maps);
	memmove(h, h + 1, sizeof(*h) * --hs->nr);
}

void happenings_release(struct happenings *hs)
{
	while (hs->nr)
		happenings_take_back(hs);
}
