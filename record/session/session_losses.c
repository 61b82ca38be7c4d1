/* session_losses.c - what a session has not seen, and why */
#include <string.h>

#include "mleak.h"
#include "record/session/no_events.h"
#include "record/session/session.h"

void session_losses(const struct session *s, struct mlk_losses *losses)
{
	memset(losses, 0, sizeof(*losses));
	if (s->probes)
		probes_losses(s->probes, losses);
	if (s->preload)
		preload_losses(s->preload, losses);
	losses->count[MLK_LOST_MAPS] += s->journal.maps_lost;
	losses->count[MLK_LOST_MODULE] += s->journal.modules.unreadable;
	losses->count[MLK_LOST_EXEC] += s->missed.nr;
	losses->skipped[MLK_SKIPPED_CHILD] = s->follow ? 0 : s->children;
}

bool session_is_quiet(const struct session *s)
{
	struct mlk_losses losses;

	if (s->allocs || s->frees)
		return false;
	session_losses(s, &losses);
	if (losses.count[MLK_LOST_ALLOC] || losses.count[MLK_LOST_FREE])
		return false;
	for (int kind = 0; kind < MLK_SKIP_NR; kind++)
		if (losses.skipped[kind] && kind != MLK_SKIPPED_CHILD)
			return false;
	return true;
}

void session_explain_quiet(struct session *s)
{
	struct process *p = s->nr ? s->all[0] : NULL;

	if (!s->quiet_told && p && s->preload)
		log_warn("no event in process %d so far: it allocates nothing, or uses an "
			 "allocator of its own, which a preloaded library does not see",
			 (int)p->target.pid);
	else if (!s->quiet_told && p)
		no_events_explain(&p->target, &p->allocators, p->cpu_ticks);
	s->quiet_told |= p != NULL;
}
