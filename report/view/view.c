/* view.c - see view.h */
#include "report/view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/name/stack_id.h"

/* A stack with its number, which decides between equals: the order of the trace. */
struct candidate {
	const struct stack *stack;
	uint64_t cost;
	uint32_t number;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	if (x->stack->bytes != y->stack->bytes)
		return x->stack->bytes > y->stack->bytes ? -1 : 1;
	if (x->stack->blocks != y->stack->blocks)
		return x->stack->blocks > y->stack->blocks ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

const char *view_cost_name(enum view_cost cost)
{
	static const char *const names[COST_NR] = {
		[COST_OUTSTANDING] = "outstanding",
		[COST_ALLOCATED] = "allocated",
		[COST_PEAK] = "peak",
		[COST_TEMPORARY] = "temporary",
		[COST_BLOCKS] = "blocks",
		[COST_LOST] = "lost",
	};

	return names[cost];
}

static uint64_t cost_of(const struct stack *stack, enum view_cost cost)
{
	switch (cost) {
	case COST_ALLOCATED:
		return stack->allocated.bytes;
	case COST_PEAK:
		return stack->peak.bytes;
	case COST_TEMPORARY:
		return stack->temporary;
	case COST_BLOCKS:
		return stack->blocks;
	case COST_LOST:
		return stack->lost.bytes;
	default:
		return stack->bytes;
	}
}

/* Take all stacks that may be shown, the heaviest first. */
static int choose_stacks(struct view *view)
{
	size_t nr_all = view->stacks->nr, nr = 0;
	struct candidate *all = calloc(nr_all ? nr_all : 1, sizeof(*all));

	view->chosen = calloc(nr_all ? nr_all : 1, sizeof(*view->chosen));
	if (!all || !view->chosen) {
		free(all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < nr_all; i++) {
		const struct stack *stack = &view->stacks->all[i];

		if (!stack->blocks && !(view->opts.all && stack->allocated.blocks))
			continue;
		if (!stack_filter_has_enough(view->sieve, stack)) {
			view->sieved_out++;
			continue;
		}
		all[nr++] = (struct candidate){stack, cost_of(stack, view->opts.cost), i};
	}
	qsort(all, nr, sizeof(*all), compare_candidates);
	for (size_t i = 0; i < nr; i++)
		view->chosen[i] = all[i].number;
	view->nr = nr;
	free(all);
	return 0;
}

/* Leave out all stacks but the heaviest. */
static void cut_stacks(struct view *view)
{
	size_t nr = view->opts.top && view->opts.top < view->nr ? view->opts.top : view->nr;

	for (size_t i = nr; i < view->nr; i++)
		live_amount_add(&view->left_out_amount, stack_outstanding(view_stack(view, i)));
	view->left_out = view->nr - nr;
	view->nr = nr;
}

static int name_frames(struct view *view)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct symbols_opts opts = {
		.addresses = view->opts.addresses,
		.offsets = view->opts.offsets,
		.lines = view->opts.details,
		.inlined = view->opts.inlined,
	};
	bool *met = calloc(dwunw_stack_limit(view->stacks->dw), sizeof(*met));
	int err = symbols_new(&view->names);

	if (!met)
		err = -ENOMEM;
	for (size_t i = 0; i < view->nr && !err; i++)
		err = symbols_want(view->names, frames,
				   stacks_frames_new(view->stacks, view->chosen[i], met, frames));
	free(met);
	return err ? err : symbols_resolve(view->names, &view->source, &opts, view->labels);
}

/* Keep only the stacks whose names pass. */
static void sift_stacks(struct view *view)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct stack_filter_stack stack = {
		.frames = frames,
		.names = view->names,
		.labels = view->labels,
		.source = &view->source,
	};
	size_t to = 0;

	for (size_t i = 0; i < view->nr; i++) {
		stack.stack = view_stack(view, i);
		stack.nr = view_frames(view, i, frames);
		if (stack_filter_passes(view->sieve, &stack))
			view->chosen[to++] = view->chosen[i];
		else
			view->sieved_out++;
	}
	view->nr = to;
}

/* Names are looked up only for the stacks of which they are needed. */
static int choose_and_name(struct view *view)
{
	bool names_first = stack_filter_wants_names(view->sieve);
	int err = choose_stacks(view);

	if (!err && !names_first)
		cut_stacks(view);
	if (!err)
		err = name_frames(view);
	if (!err && names_first) {
		sift_stacks(view);
		cut_stacks(view);
	}
	return err;
}

static int make_remarks(struct view *view)
{
	char text[128];
	int err = 0;

	for (int status = 0; status < DWUNW_STATUS_NR && !err; status++) {
		snprintf(text, sizeof(text), "[stack incomplete: %s]",
			 dwunw_status_text((enum dwunw_status)status));
		err = labels_intern(view->labels, LABELS_NO_MODULE,
				    view->opts.details ? text : "[incomplete]", "",
				    &view->remarks[status]);
	}
	return err;
}

/* Of a process that comes again under the same number, both have one root. */
static int make_roots(struct view *view)
{
	const struct view_opts *opts = &view->opts;
	size_t nr = opts->live && opts->processes ? live_nr_processes(opts->live) : 0;
	struct process_groups groups;
	int err;

	if (nr < 2)
		return 0;
	err = process_groups_init(&groups, opts->processes, opts->live,
				  !opts->merged || opts->each_process);
	view->roots = calloc(nr, sizeof(*view->roots));
	view->gone = calloc(nr, sizeof(*view->gone));
	if (!view->roots || !view->gone)
		err = -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++) {
		char *name = process_groups_label(&groups, groups.of[i]);

		err = name ? labels_intern(view->labels, LABELS_NO_MODULE, name, "",
					   &view->roots[i])
			   : -ENOMEM;
		view->gone[i] = groups.all[groups.of[i]].gone;
		free(name);
	}
	process_groups_release(&groups);
	return err;
}

int view_new(struct view **out, const struct stacks *stacks, const struct symbols_source *source,
	     const struct view_opts *opts)
{
	struct view *view = calloc(1, sizeof(*view));
	int err;

	*out = NULL;
	if (!view)
		return -ENOMEM;
	view->stacks = stacks;
	view->opts = *opts;
	view->source = *source;
	err = stack_filter_new(&view->sieve, &opts->sieve);
	if (!err)
		err = labels_new(&view->labels);
	if (!err)
		err = make_remarks(view);
	if (!err)
		err = make_roots(view);
	if (!err)
		err = choose_and_name(view);
	if (err)
		view_free(view);
	else
		*out = view;
	return err;
}

const struct stack *view_stack(const struct view *view, size_t i)
{
	return &view->stacks->all[view->chosen[i]];
}

/* Write the labels of the frame at @place to @path, which has room for @room, from 1.  Returns how
 * many. */
static size_t frame_labels(const struct view *view, uint32_t place, uint32_t *path, size_t room)
{
	size_t nr, nr_inlined;
	const uint32_t *labels = symbols_labels_at(view->names, place, &nr);

	nr_inlined = nr <= room ? nr - 1 : room - 1;
	for (size_t i = 0; i < nr_inlined; i++)
		path[i] = labels[i];
	path[nr_inlined] = labels[nr - 1];
	return nr_inlined + 1;
}

/* The labels of stack @i without its process's, innermost first: those of its @most innermost
 * frames. */
static size_t stack_path(const struct view *view, size_t i, size_t most, uint32_t *path)
{
	const struct stack *stack = view_stack(view, i);
	uint32_t places[STACK_MAX_FRAMES];
	size_t nr_frames = stacks_places(view->stacks, view->chosen[i], places, most), nr = 0;

	/* there is always room for a label of each, for the remark, and for the process */
	for (size_t at = 0; at < nr_frames; at++)
		nr += frame_labels(view, places[at], path + nr,
				   VIEW_MAX_PATH - 1 - nr - (nr_frames - at));
	if (stack->status != DWUNW_STATUS_ENDED || !nr)
		path[nr++] = view->remarks[stack->status];
	return nr;
}

size_t view_innermost(const struct view *view, size_t i, uint32_t path[VIEW_MAX_PATH], size_t most)
{
	size_t nr = stack_path(view, i, most, path);

	return nr < most ? nr : most;
}

size_t view_path(const struct view *view, size_t i, uint32_t path[VIEW_MAX_PATH])
{
	size_t first = view->roots != NULL, nr;

	if (first)
		path[0] = view->roots[view_stack(view, i)->process];
	nr = first + stack_path(view, i, STACK_MAX_FRAMES, path + first);
	if (view->opts.inverted)
		return nr;
	for (size_t a = first, b = nr - 1; a < b; a++, b--) {
		uint32_t label = path[a];

		path[a] = path[b];
		path[b] = label;
	}
	return nr;
}

const char *view_process(const struct view *view, uint32_t number)
{
	return view->roots ? view->labels->all[view->roots[number]].name : NULL;
}

uint64_t view_cost_of(const struct view *view, size_t i)
{
	return cost_of(view_stack(view, i), view->opts.cost);
}

size_t view_frames(const struct view *view, size_t i, struct dwunw_frame frames[STACK_MAX_FRAMES])
{
	return stacks_frames(view->stacks, view->chosen[i], frames);
}

uint32_t *view_as_met(const struct view *view, size_t nr)
{
	uint32_t *order = calloc(view->stacks->nr + 1, sizeof(*order));
	size_t to = 0;

	for (size_t i = 0; order && i < nr; i++)
		order[view->chosen[i]] = (uint32_t)i + 1;
	for (size_t number = 0; order && number < view->stacks->nr; number++)
		if (order[number])
			order[to++] = order[number] - 1;
	return order;
}

uint64_t view_stack_id(const struct view *view, size_t i)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];

	return stack_id(&view->source, frames, view_frames(view, i, frames));
}

struct live_amount view_shown(const struct view *view)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < view->nr; i++)
		live_amount_add(&sum, stack_outstanding(view_stack(view, i)));
	return sum;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	stack_filter_free(view->sieve);
	symbols_free(view->names);
	labels_free(view->labels);
	free(view->chosen);
	free(view->roots);
	free(view->gone);
	free(view);
}
