/* process.c - see process.h */
#include "record/process/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/base/clock.h"
#include "record/inject/inject.h"

void process_release(struct process *p)
{
	allocators_release(&p->allocators);
	maps_release(&p->maps);
	maps_release(&p->before);
	threads_release(&p->threads);
	given_back_release(&p->given_back);
	perf_map_release(&p->perf_map);
	jitdump_release(&p->jitdump);
	interpreter_release(&p->interpreter);
	target_release(&p->target);
}

/* The executable mappings go into the trace: no stack can lead anywhere else.  What a single chunk
 * does not hold is counted as lost. */
static void write_maps(struct process *p, struct trace_out *out, uint64_t time_ns)
{
	struct mlk_maps snapshot = {.tgid = (uint32_t)p->target.pid,
				    .time_ns = time_ns,
				    .nr = p->maps.nr,
				    .mappings = p->maps.v};
	int err = mlk_writer_maps(out->writer, &snapshot);

	if (err == -EINVAL)
		out->maps_lost++;
	else
		trace_out_fail(out, err);
	p->maps_changed = false;
}

static void note_change(struct process *p, struct trace_out *out, uint64_t time_ns)
{
	if (!p->maps_changed || time_ns < p->maps_changed_ns)
		p->maps_changed_ns = time_ns;
	p->maps_changed = true;
	out->code_changed = true;
}

/* Keep what is mapped now among what was mapped before: events of then may still be on their way.
 */
static void keep_before(struct process *p, struct trace_out *out)
{
	for (size_t i = 0; i < p->maps.nr; i++)
		trace_out_fail(out, maps_add(&p->before, &p->maps.v[i]));
	p->before_new = true;
}

void process_mapped(struct process *p, struct trace_out *out, uint64_t time_ns,
		    const struct mlk_mapping *m)
{
	struct mlk_mapping known = *m;

	if (jitdump_meet(&p->jitdump, &p->target, m))
		return;
	/* What is replaced was valid until now: it needs a snapshot of its own. */
	if (p->maps_changed && maps_overlaps(&p->maps, m))
		write_maps(p, out, p->maps_changed_ns);
	trace_out_fail(out, module_table_identify(&out->modules, &p->target, out->writer, &known));
	trace_out_fail(out, maps_add(&p->maps, &known));
	note_change(p, out, time_ns);
}

void process_generated(struct process *p, struct trace_out *out, uint64_t time_ns,
		       const struct maps *maps)
{
	int added = maps_add_generated(&p->maps, maps);

	if (added < 0)
		trace_out_fail(out, added);
	if (added <= 0)
		return;
	write_maps(p, out, time_ns);
	out->code_changed = true;
}

void process_execed(struct process *p, struct trace_out *out, uint64_t time_ns)
{
	if (p->maps_changed)
		write_maps(p, out, p->maps_changed_ns);
	keep_before(p, out);
	maps_clear(&p->maps);
	p->regions.changed = true;
	perf_map_execed(&p->perf_map);
	jitdump_execed(&p->jitdump);
	p->maps_changed = false;
	interpreter_release(&p->interpreter);
	note_change(p, out, time_ns);
}

/* Is what was read, @fresh, in the trace already? */
static bool is_written(const struct process *p, const struct maps *fresh)
{
	if (p->maps_changed || p->maps.nr != fresh->nr)
		return false;
	for (size_t i = 0; i < fresh->nr; i++)
		if (p->maps.v[i].start != fresh->v[i].start ||
		    p->maps.v[i].end != fresh->v[i].end ||
		    !maps_same_file(&p->maps.v[i], &fresh->v[i]))
			return false;
	return true;
}

bool process_snapshot(struct process *p, struct trace_out *out, uint64_t time_ns)
{
	struct maps fresh = {0};
	int err = target_read_maps(&p->target, &fresh);

	if (err) {
		if (err == -ENOMEM)
			trace_out_fail(out, err);
		return false;
	}
	p->nr_mappings = fresh.nr;
	maps_keep_code(&fresh);
	inject_leave_out(&fresh);
	jitdump_take_markers(&p->jitdump, &p->target, &fresh);
	for (size_t i = 0; i < fresh.nr; i++)
		trace_out_fail(out, module_table_identify(&out->modules, &p->target, out->writer,
							  &fresh.v[i]));
	if (p->deaf && time_ns && is_written(p, &fresh)) {
		maps_release(&fresh);
		return true;
	}
	keep_before(p, out);
	maps_release(&p->maps);
	p->maps = fresh;
	write_maps(p, out, time_ns);
	out->code_changed = true;
	return true;
}

void process_begin_trace(struct process *p, struct trace_out *out)
{
	/* Of one that has ended the events that are on their way can lead only to these. */
	if (!process_snapshot(p, out, 0))
		write_maps(p, out, 0);
	threads_begin_trace(&p->threads);
	perf_map_begin_trace(&p->perf_map);
	jitdump_begin_trace(&p->jitdump);
	trace_out_fail(out,
		       interpreter_write(&p->interpreter, out->writer, (uint32_t)p->target.pid));
}

void process_set_maps(struct process *p, struct trace_out *out, uint64_t time_ns, struct maps *maps)
{
	struct maps before = p->maps;

	p->maps = *maps;
	p->regions.changed = true;
	*maps = before;
	write_maps(p, out, time_ns);
	out->code_changed = true;
}

void process_inherit(struct process *p, struct trace_out *out, struct process *parent,
		     uint32_t parent_tid)
{
	for (size_t i = 0; i < parent->maps.nr; i++)
		trace_out_fail(out, maps_add(&p->maps, &parent->maps.v[i]));
	trace_out_fail(out, threads_inherit(&p->threads, (uint32_t)p->target.pid, &parent->threads,
					    &parent->target, parent_tid));
	interpreter_inherit(&p->interpreter, &parent->interpreter, p->born_ns);
	trace_out_fail(out,
		       interpreter_write(&p->interpreter, out->writer, (uint32_t)p->target.pid));
	note_change(p, out, p->born_ns);
}

void process_flush_maps(struct process *p, struct trace_out *out)
{
	uint64_t since_ns = p->maps_changed ? p->maps_changed_ns : clock_now_ns();

	if ((out->listening && !out->maps_missed && !p->deaf) ||
	    !process_snapshot(p, out, since_ns))
		if (p->maps_changed)
			write_maps(p, out, p->maps_changed_ns);
}

void process_forget_before(struct process *p, struct trace_out *out)
{
	if (!p->before.nr || p->before_new)
		return;
	maps_clear(&p->before);
	out->code_changed = true;
}

void process_write_threads(struct process *p, struct trace_out *out)
{
	trace_out_fail(out, threads_write(&p->threads, &p->target, out->writer));
}

static void add_code(struct code_ranges *to, const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->v[i].perms & MLK_PERM_X)
			to->v[to->nr++] = (struct mlk_mapping){.start = maps->v[i].start,
							       .end = maps->v[i].end,
							       .perms = MLK_PERM_X,
							       .path = ""};
}

static int compare_ranges(const void *a, const void *b)
{
	const struct mlk_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Make one of those that overlap or touch. */
static void join_ranges(struct code_ranges *c)
{
	size_t to = 0;

	for (size_t i = 0; i < c->nr; i++)
		if (!to || c->v[i].start > c->v[to - 1].end)
			c->v[to++] = c->v[i];
		else if (c->v[i].end > c->v[to - 1].end)
			c->v[to - 1].end = c->v[i].end;
	c->nr = to;
}

static int collect_code(struct code_ranges *c, struct process *const *all, size_t nr)
{
	size_t room = 1;

	for (size_t i = 0; i < nr; i++)
		room += all[i]->maps.nr + all[i]->before.nr;
	c->v = calloc(room, sizeof(*c->v));
	if (!c->v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		add_code(c, &all[i]->maps);
		add_code(c, &all[i]->before);
	}
	qsort(c->v, c->nr, sizeof(*c->v), compare_ranges);
	join_ranges(c);
	return 0;
}

static bool same_ranges(const struct code_ranges *a, const struct code_ranges *b)
{
	if (a->nr != b->nr || !a->v)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].start != b->v[i].start || a->v[i].end != b->v[i].end)
			return false;
	return true;
}

void code_ranges_update(struct code_ranges *c, struct trace_out *out, struct process *const *all,
			size_t nr)
{
	/* Without notices of new mappings no word can be known not to be code, so all that could be
	 * addresses are. */
	static const struct mlk_mapping anything = {
		.start = 1 << 16, .end = 1ull << 47, .perms = MLK_PERM_X, .path = ""};
	struct code_ranges now = {0};
	bool heard = out->listening && !out->maps_missed;

	out->code_changed = false;
	for (size_t i = 0; i < nr; i++)
		heard &= !all[i]->deaf;
	if (!heard) {
		code_ranges_release(c);
		mlk_writer_set_code(out->writer, &anything, 1);
		return;
	}
	trace_out_fail(out, collect_code(&now, all, nr));
	if (now.v && !same_ranges(c, &now)) {
		mlk_writer_set_code(out->writer, now.v, now.nr);
		code_ranges_release(c);
		*c = now;
	} else {
		code_ranges_release(&now);
	}
}

void code_ranges_release(struct code_ranges *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}
