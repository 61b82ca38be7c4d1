/* top_view.c - see top_view.h */
#include "report/top/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"

#define KEPT_PROCESSES 64 /* that have ended; more of a server that forks are of no use */

int top_view_start(struct top_view *view, const struct top_opts *opts, struct mlk_reader *trace,
		   follow_event_fn *event, void *arg)
{
	const struct follow_opts follow = {
		.replay = {.debug_dirs = opts->debug_dirs,
			   .nr_debug_dirs = opts->nr_debug_dirs,
			   .watch = {.changed = top_state_changed, .arg = &view->state}},
		.event = event,
		.arg = arg,
		.keep_ended = KEPT_PROCESSES,
		.forgot = top_state_forget,
		.forgot_arg = &view->state,
	};
	const struct view_opts names = {.details = true, .full_recursion = opts->full_recursion};
	struct symbols_source source;
	int err;

	view->opts = opts;
	view->trace = trace;
	view->state.start_ns = mlk_reader_meta(trace)->start_ns;
	err = follow_new(&view->follow, trace, &follow);
	if (err)
		return err;
	view->leaks = follow_replay(view->follow);
	source = (struct symbols_source){.dw = view->leaks->dw, .images = view->leaks->images};
	return stack_names_new(&view->names, &source, &names);
}

/* Name the first @nr stacks of the table. */
static int name_rows(struct top_view *view, size_t nr)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr && i < view->table.nr; i++)
		err = stack_names_want(view->names, view->table.rows[i].id);
	return err ? err : stack_names_resolve(view->names);
}

int top_view_sort(struct top_view *view, enum top_sort sort, size_t nr)
{
	top_table_sort(&view->table, sort);
	return name_rows(view, nr);
}

int top_view_update(struct top_view *view, uint64_t now_ns, size_t nr)
{
	int err = top_state_tick(&view->state, view->leaks->stacks, now_ns);

	view->totals = *live_totals(view->leaks->live);
	view->begun = live_nr_begun(view->leaks->live);
	view->lost = replay_lost(view->leaks);
	view->resident_known = memory_samples_at(&view->leaks->memory, MLK_MEMORY_RSS,
						 view->live ? UINT64_MAX : now_ns, &view->resident);
	if (!err)
		err = top_table_fill(&view->table, &view->state, view->leaks);
	return err ? err : top_view_sort(view, view->opts->sort, nr);
}

int top_view_apart(const struct top_view *view, const uint32_t *rows, size_t nr, size_t **from)
{
	uint32_t *ids = calloc(nr + 1, sizeof(*ids));
	int err = ids ? 0 : -ENOMEM;

	*from = calloc(nr + 1, sizeof(**from));
	if (!*from)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < nr; i++)
		ids[i] = view->table.rows[rows ? rows[i] : i].id;
	if (!err)
		err = stack_names_apart(view->names, ids, nr, *from);
	free(ids);
	if (err) {
		free(*from);
		*from = NULL;
	}
	return err;
}

char *top_view_title(const struct top_view *view)
{
	const struct mlk_meta *meta = mlk_reader_meta(view->trace);
	char *text, number[TEXT_NUMBER_MAX];
	int len;

	if (meta->of_kernel)
		return strdup("the kernel");
	if (view->begun > 1)
		len = asprintf(&text, "%s processes", text_number(number, view->begun));
	else
		len = asprintf(&text, "%s (%" PRIu64 ")", meta->comm[0] ? meta->comm : "process",
			       meta->tgid);
	return len < 0 ? NULL : text;
}

const char *top_time(char buf[TOP_TIME_MAX], uint64_t ns)
{
	double s = (double)ns / 1e9;

	if (s < 100)
		snprintf(buf, TOP_TIME_MAX, "%.1f s", s);
	else if (s < 6000)
		snprintf(buf, TOP_TIME_MAX, "%.1f min", s / 60);
	else if (s < 172800)
		snprintf(buf, TOP_TIME_MAX, "%.1f h", s / 3600);
	else
		snprintf(buf, TOP_TIME_MAX, "%.1f d", s / 86400);
	return buf;
}

void top_view_release(struct top_view *view)
{
	stack_names_free(view->names);
	follow_free(view->follow);
	top_table_release(&view->table);
	top_state_release(&view->state);
	free(view->named);
}
