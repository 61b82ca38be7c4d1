/* sample_names.c - the names that the recorded processes write of code which they generate: at the
 * begin, at the end, and less and less often between
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/generated/frame_size.h"
#include "record/session/session.h"

#define LEAST_NS UINT64_C(1000000000) /* between two looks, */
#define PART	 16 /* and this part of the time since the first, so that looks stay few */
#define STEPS	 4  /* of PERF_MAP_STEP, taken at once while the process runs */

static bool is_due(const struct perf_map *m, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - m->last_ns;

	return !m->last_ns ||
	       (since_ns >= LEAST_NS && since_ns >= (m->last_ns - m->first_ns) / PART);
}

/* Say what is left out of @from, which is called @file and @number, once, if something is. */
static void tell_problem(const struct process *p, struct name_source *from, const char *file,
			 pid_t number)
{
	if (!from->problem || from->told)
		return;
	from->told = true;
	log_warn("the names of generated code of process %d are incomplete: its %s%d.%s %s",
		 (int)p->target.pid, file, (int)number, *file == '/' ? "map" : "dump",
		 from->problem);
}

/* @from begins anew: names of before do not hold any more, whichever file they were in.  Those of
 * the other one are to be taken again. */
static void forget_names(struct process *p, const struct name_source *from)
{
	p->perf_map.source.anew = p->jitdump.source.anew = false;
	if (from == &p->jitdump.source)
		perf_map_restart(&p->perf_map);
	else
		jitdump_restart(&p->jitdump);
}

/* Write @list, which was read of @from since @time_ns. */
static int write_names(struct session *s, struct process *p, const struct code_list *list,
		       struct name_source *from, uint64_t time_ns)
{
	const struct mlk_code_names names = {.tgid = (uint32_t)p->target.pid,
					     .time_ns = time_ns,
					     .source = from == &p->jitdump.source
							       ? MLK_CODE_NAMES_JITDUMP
							       : MLK_CODE_NAMES_PERF_MAP,
					     .flags = from->anew ? MLK_CODE_NAMES_ANEW : 0,
					     .left_out = name_source_missing(from),
					     .problem = from->problem ? from->problem : "",
					     .nr = list->nr,
					     .names = list->v};

	if (!list->nr && !name_source_is_news(from))
		return 0;
	from->written = name_source_missing(from) + 1;
	if (from->anew)
		forget_names(p, from);
	return mlk_writer_code_names(s->out.writer, &names);
}

/* Does the process run HotSpot, whose code may keep no frame pointers? */
static bool is_hotspot(const struct process *p)
{
	for (size_t i = 0; i < p->maps.nr; i++) {
		const char *slash = strrchr(p->maps.v[i].path, '/');

		if (slash && !strcmp(slash, "/libjvm.so"))
			return true;
	}
	return false;
}

/* Look at the first instructions of all functions: how large are their frames? */
static void find_sizes(const struct process *p, struct code_list *list)
{
	uint8_t code[FRAME_SIZE_CODE];

	for (size_t i = 0; i < list->nr; i++) {
		struct mlk_code_name *n = &list->v[i];
		size_t len = n->len < sizeof(code) ? (size_t)n->len : sizeof(code);

		if (!target_read_memory(&p->target, n->start, code, len))
			n->frame = frame_size(code, len);
	}
}

/* Take the next part of @from.  Returns whether there is more. */
static bool take_part(struct session *s, struct process *p, struct name_source *from,
		      uint64_t time_ns, bool last)
{
	struct code_list list = {0};
	bool more = false;
	char *text;
	int err = from == &p->jitdump.source
			  ? jitdump_read(&p->jitdump, &p->target,
					 &(struct jitdump_how){s->no_file_names, last}, &list,
					 &text, &more)
			  : perf_map_read(&p->perf_map, &p->target, s->no_file_names, &list, &text,
					  &more);

	if (!err && list.nr && is_hotspot(p))
		find_sizes(p, &list);
	if (!err)
		err = write_names(s, p, &list, from, time_ns);
	trace_out_fail(&s->out, err);
	code_list_release(&list);
	free(text);
	return more && !err;
}

/* Take what there is of @from, or some of it while the process runs. */
static void take_parts(struct session *s, struct process *p, struct name_source *from,
		       uint64_t time_ns, bool last)
{
	for (int i = 0; take_part(s, p, from, time_ns, last) && (last || i < STEPS); i++)
		;
}

void session_sample_names(struct session *s, struct process *p, bool last)
{
	struct perf_map *m = &p->perf_map;
	uint64_t now_ns = clock_now_ns();
	/* what is new was written since the last look */
	uint64_t time_ns = m->last_ns ? m->last_ns : now_ns;

	if (s->out.err || s->looks || (!last && !is_due(m, now_ns)))
		return;
	take_parts(s, p, &p->jitdump.source, time_ns, last);
	take_parts(s, p, &m->source, time_ns, last);
	/* the map may have begun anew */
	take_parts(s, p, &p->jitdump.source, time_ns, last);
	tell_problem(p, &m->source, "/tmp/perf-", m->inner);
	tell_problem(p, &p->jitdump.source, "jit-", jitdump_number(&p->jitdump));
	m->last_ns = now_ns;
	if (!m->first_ns)
		m->first_ns = now_ns;
}
