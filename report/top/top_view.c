/* top_view.c - see top_view.h */
#include "report/top/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/text.h"

#define KEPT_PROCESSES 64 /* that have ended; more of a server that forks are of no use */

static int on_event(void *arg, const struct mlk_event *event, uint32_t id)
{
	struct top_view *view = arg;

	return view->event ? view->event(view->event_arg, event, id) : 0;
}

static int on_record(void *arg, const struct mlk_record *record)
{
	struct top_view *view = arg;

	top_resident_note(&view->where, record, view->step_ns);
	return 0;
}

int top_view_start(struct top_view *view, const struct top_opts *opts, struct mlk_reader *trace,
		   follow_event_fn *event, void *arg)
{
	const struct follow_opts follow = {
		.replay = {.debug_dirs = opts->debug_dirs,
			   .nr_debug_dirs = opts->nr_debug_dirs,
			   .watch = {.changed = top_state_changed, .arg = &view->state}},
		.event = on_event,
		.arg = view,
		.records = opts->resident ? RESIDENCE_RECORDS : 0,
		.note = on_record,
		.keep_ended = KEPT_PROCESSES,
		.forgot = top_state_forget,
		.forgot_arg = &view->state,
	};
	const struct view_opts names = {.details = true, .full_recursion = opts->full_recursion};
	struct symbols_source source;
	int err;

	view->opts = opts;
	view->trace = trace;
	view->event = event;
	view->event_arg = arg;
	view->state.start_ns = mlk_reader_meta(trace)->start_ns;
	err = follow_new(&view->follow, trace, &follow);
	if (err)
		return err;
	view->leaks = follow_replay(view->follow);
	source = (struct symbols_source){.dw = view->leaks->dw, .images = view->leaks->images};
	return stack_names_new(&view->names, &source, &names);
}

int top_view_step(struct top_view *view, uint64_t now_ns)
{
	int state;

	view->step_ns = now_ns;
	state = follow_step(view->follow, now_ns);
	if (state >= 0)
		top_resident_update(&view->where, view->leaks, mlk_reader_meta(view->trace),
				    now_ns);
	view->ended = state == FOLLOW_ENDED;
	return state;
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
	int err = top_state_tick(&view->state, view->follow, now_ns);

	view->totals = *live_totals(view->leaks->live);
	view->begun = live_nr_begun(view->leaks->live);
	view->lost = replay_lost(view->leaks);
	view->resident_known = memory_samples_at(&view->leaks->memory, MLK_MEMORY_RSS,
						 view->live ? UINT64_MAX : now_ns, &view->resident);
	if (!err)
		err = top_table_fill(&view->all, &view->state, view->leaks);
	if (!err)
		err = top_view_part(view, NULL, NULL, NULL, NULL);
	return err ? err : top_view_sort(view, view->opts->sort, nr);
}

int top_view_holdings(const struct top_view *view, struct holdings *holdings)
{
	int err =
		holdings_fill(holdings, view->leaks->live, mlk_reader_meta(view->trace)->of_kernel,
			      view->state.start_ns, view->all.now_ns);

	holdings->known_ns = view->state.known_ns;
	return err;
}

/* What the threads that are @in hold from each stack, by its number. */
static int sum_stacks(const struct top_view *view, const struct holdings *from, const bool *in,
		      struct holding **sums)
{
	size_t nr = view->leaks->stacks->nr;

	*sums = calloc(nr + 1, sizeof(**sums));
	if (!*sums)
		return -ENOMEM;
	for (size_t i = 0; i < from->cells.nr; i++) {
		const struct holding *cell = &from->cells.all[i];

		if (!in[cell->thread] || cell->stack >= nr)
			continue;
		live_amount_add(&(*sums)[cell->stack].now, cell->now);
		(*sums)[cell->stack].born_us += cell->born_us;
	}
	return 0;
}

static int add_part(struct top_view *view, const struct top_row *whole, const struct holding *now,
		    const struct holdings *of, const struct holding *before, uint64_t since_ns)
{
	struct top_row row = *whole;

	row.now = now->now;
	row.age_ns = holdings_age(of, now->now, now->born_us);
	row.rate = before && since_ns ? (double)(int64_t)(now->now.bytes - before->now.bytes) *
						1e9 / (double)since_ns
				      : 0;
	if (!row.now.blocks && !row.now.bytes)
		return 0;
	return array_append(&view->table.rows, &view->table.nr, &view->table.room, &row,
			    sizeof(row));
}

int top_view_part(struct top_view *view, const struct holdings *now, const bool *in,
		  const struct holdings *before, const bool *in_before)
{
	struct holding *sums = NULL, *then = NULL;
	struct top_table *table = &view->table;
	int err = 0;

	table->nr = 0;
	table->nr_stacks = view->all.nr_stacks;
	table->now_ns = view->all.now_ns;
	if (in)
		err = sum_stacks(view, now, in, &sums);
	if (in && !err && before)
		err = sum_stacks(view, before, in_before, &then);
	for (size_t i = 0; !err && i < view->all.nr; i++) {
		const struct top_row *row = &view->all.rows[i];

		if (!in)
			err = array_append(&table->rows, &table->nr, &table->room, row,
					   sizeof(*row));
		else
			err = add_part(view, row, &sums[row->stack], now,
				       then ? &then[row->stack] : NULL,
				       before ? now->known_ns - before->known_ns : 0);
	}
	free(sums);
	free(then);
	return err;
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
	top_resident_release(&view->where);
	follow_free(view->follow);
	free(view->table.rows); /* the names are those of all */
	top_table_release(&view->all);
	top_state_release(&view->state);
	free(view->named);
}
