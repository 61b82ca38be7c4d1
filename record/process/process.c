/* process.c - see process.h */
#include "record/process/process.h"

#include <errno.h>
#include <string.h>

#include "record/base/clock.h"

uint64_t trace_out_now_ns(void)
{
	return clock_now_ns();
}

void process_release(struct process *p)
{
	allocators_release(&p->allocators);
	maps_release(&p->maps);
	maps_release(&p->before);
	threads_release(&p->threads);
	target_release(&p->target);
}

/* The executable mappings go into the trace: no stack can lead anywhere else.  What a single chunk
 * does not hold is counted as lost. */
static void write_maps(struct process *p, struct trace_out *j, uint64_t time_ns)
{
	struct mlk_maps snapshot = {.tgid = (uint32_t)p->target.pid,
				    .time_ns = time_ns,
				    .nr = p->maps.nr,
				    .mappings = p->maps.v};
	int err = mlk_writer_maps(j->writer, &snapshot);

	if (err == -EINVAL)
		j->maps_lost++;
	else
		trace_out_fail(j, err);
	p->maps_changed = false;
}

static void note_change(struct process *p, struct trace_out *j, uint64_t time_ns)
{
	if (!p->maps_changed || time_ns < p->maps_changed_ns)
		p->maps_changed_ns = time_ns;
	p->maps_changed = true;
	j->code_changed = true;
}

/* Keep what is mapped now among what was mapped before: events of then may still be on their way.
 */
static void keep_before(struct process *p, struct trace_out *j)
{
	for (size_t i = 0; i < p->maps.nr; i++)
		trace_out_fail(j, maps_add(&p->before, &p->maps.v[i]));
}

void process_mapped(struct process *p, struct trace_out *j, uint64_t time_ns,
		    const struct mlk_mapping *m)
{
	struct mlk_mapping known = *m;

	/* What is replaced was valid until now: it needs a snapshot of its own. */
	if (p->maps_changed && maps_overlaps(&p->maps, m))
		write_maps(p, j, p->maps_changed_ns);
	trace_out_fail(j, module_table_identify(&j->modules, &p->target, j->writer, &known));
	trace_out_fail(j, maps_add(&p->maps, &known));
	note_change(p, j, time_ns);
}

void process_execed(struct process *p, struct trace_out *j, uint64_t time_ns)
{
	if (p->maps_changed)
		write_maps(p, j, p->maps_changed_ns);
	keep_before(p, j);
	maps_clear(&p->maps);
	p->maps_changed = false;
	note_change(p, j, time_ns);
}

bool process_snapshot(struct process *p, struct trace_out *j, uint64_t time_ns)
{
	struct maps fresh = {0};
	int err = target_read_maps(&p->target, &fresh);

	if (err) {
		if (err == -ENOMEM)
			trace_out_fail(j, err);
		return false;
	}
	maps_keep_code(&fresh);
	for (size_t i = 0; i < fresh.nr; i++)
		trace_out_fail(
			j, module_table_identify(&j->modules, &p->target, j->writer, &fresh.v[i]));
	keep_before(p, j);
	maps_release(&p->maps);
	p->maps = fresh;
	write_maps(p, j, time_ns);
	j->code_changed = true;
	return true;
}

void process_set_maps(struct process *p, struct trace_out *j, uint64_t time_ns, struct maps *maps)
{
	struct maps before = p->maps;

	p->maps = *maps;
	*maps = before;
	write_maps(p, j, time_ns);
	j->code_changed = true;
}

void process_inherit(struct process *p, struct trace_out *j, struct process *parent,
		     uint32_t parent_tid)
{
	for (size_t i = 0; i < parent->maps.nr; i++)
		trace_out_fail(j, maps_add(&p->maps, &parent->maps.v[i]));
	trace_out_fail(j, threads_inherit(&p->threads, (uint32_t)p->target.pid, &parent->threads,
					  &parent->target, parent_tid));
	note_change(p, j, p->born_ns);
}

void process_flush_maps(struct process *p, struct trace_out *j)
{
	uint64_t since_ns = p->maps_changed ? p->maps_changed_ns : trace_out_now_ns();

	if ((j->listening && !j->maps_missed) || !process_snapshot(p, j, since_ns))
		if (p->maps_changed)
			write_maps(p, j, p->maps_changed_ns);
}

void process_forget_before(struct process *p, struct trace_out *j)
{
	if (!p->before.nr)
		return;
	maps_clear(&p->before);
	j->code_changed = true;
}

void process_write_threads(struct process *p, struct trace_out *j)
{
	trace_out_fail(j, threads_write(&p->threads, &p->target, j->writer));
}

bool process_has_ended(const struct process *p)
{
	return target_has_ended(&p->target);
}
