/* sample_regions.c - all that the recorded processes have mapped: at the begin, at the end, and
 * less and less often between
 */
#include <errno.h>

#include "record/base/clock.h"
#include "record/session/session.h"

#define SHARE 100 /* reading mappings: at most this part of the time */

/* Is it time to read the mappings of @p again?  What it has is never older in the trace than half
 * the time that it was recorded, should it end without notice. */
static bool is_due(const struct process_regions *r, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - r->last_ns;

	if (r->wanted || !r->first_ns)
		return true;
	if (since_ns < r->took_ns * SHARE)
		return false;
	return r->changed || since_ns >= r->last_ns - r->first_ns;
}

void session_sample_regions(struct session *s, struct process *p)
{
	struct process_regions *r = &p->regions;
	struct mlk_regions regions = {.tgid = (uint32_t)p->target.pid, .time_ns = clock_now_ns()};
	struct maps maps = {0};
	int err;

	if (s->out.err || !is_due(r, regions.time_ns))
		return;
	err = target_read_maps(&p->target, &maps);
	if (!err && !target_is_reaped(&p->target)) {
		regions.nr = maps.nr;
		regions.mappings = maps.v;
		p->nr_mappings = maps.nr;
		err = mlk_writer_regions(s->out.writer, &regions);
		trace_out_fail(&s->out, err);
	}
	if (err == -ENOMEM)
		trace_out_fail(&s->out, err);
	maps_release(&maps);
	r->last_ns = clock_now_ns();
	r->took_ns = r->last_ns - regions.time_ns;
	if (!r->first_ns)
		r->first_ns = regions.time_ns;
	r->wanted = r->changed = false;
}
