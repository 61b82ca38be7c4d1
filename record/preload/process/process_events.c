/* process_events.c - see process_events.h */
#include "record/preload/process/process_events.h"

#include <string.h>

bool process_events_full(const struct process_events *hs)
{
	return hs->nr == HAPPENINGS_MAX;
}

struct happening *process_events_add(struct process_events *hs, const struct happening *h)
{
	if (process_events_full(hs))
		return NULL;
	hs->all[hs->nr] = *h;
	return &hs->all[hs->nr++];
}

void process_events_withdraw(struct process_events *hs)
{
	maps_release(&hs->all[--hs->nr].maps);
}

void process_events_drop_first(struct process_events *hs)
{
	maps_release(&hs->all[0].maps);
	memmove(hs->all, hs->all + 1, sizeof(*hs->all) * --hs->nr);
}

int process_events_add_code(struct process_events *hs, pid_t pid, const struct maps *now)
{
	for (uint32_t i = 0; i < hs->nr; i++) {
		struct happening *h = &hs->all[i];
		int added;

		if (h->pid != pid || h->kind == HAPPENING_ENDED || &h->maps == now)
			continue;
		added = maps_add_generated(&h->maps, now);
		if (added < 0)
			return added;
	}
	return 0;
}
