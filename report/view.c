/* view.c - see view.h */
#include "report/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct view {
	const struct stacks *stacks;
	uint32_t *chosen; /* numbers of stacks */
	size_t nr;
	struct view_opts opts;
	struct labels *labels;
	struct names *names;
	uint32_t remarks[DWUNW_STATUS_NR]; /* labels of incomplete stacks */
	uint32_t *roots;		   /* labels of processes, by number; NULL: there is one */
	size_t left_out;
	struct live_amount left_out_amount;
};

/* A stack with its number, which decides between equals: the order of the trace. */
struct candidate {
	const struct stack *stack;
	uint32_t number;
};

static int heavier(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->stack->bytes != y->stack->bytes)
		return x->stack->bytes > y->stack->bytes ? -1 : 1;
	if (x->stack->blocks != y->stack->blocks)
		return x->stack->blocks > y->stack->blocks ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static bool is_wanted(const struct view *view, const struct stack *stack)
{
	const struct view_opts *opts = &view->opts;

	return stack->blocks && (!opts->pid || !opts->live ||
				 live_process(opts->live, stack->process).tgid == opts->pid);
}

static int choose(struct view *view)
{
	size_t nr_all = stacks_nr(view->stacks), nr = 0;
	struct candidate *all = calloc(nr_all ? nr_all : 1, sizeof(*all));
	int err = -ENOMEM;

	view->chosen = calloc(nr_all ? nr_all : 1, sizeof(*view->chosen));
	if (!all || !view->chosen)
		goto out;
	for (uint32_t i = 0; i < nr_all; i++) {
		const struct stack *stack = stacks_get(view->stacks, i);

		if (is_wanted(view, stack))
			all[nr++] = (struct candidate){.stack = stack, .number = i};
	}
	qsort(all, nr, sizeof(*all), heavier);
	view->nr = view->opts.top && view->opts.top < nr ? view->opts.top : nr;
	for (size_t i = 0; i < view->nr; i++)
		view->chosen[i] = all[i].number;
	view->left_out = nr - view->nr;
	for (size_t i = view->nr; i < nr; i++) {
		view->left_out_amount.bytes += all[i].stack->bytes;
		view->left_out_amount.blocks += all[i].stack->blocks;
	}
	err = 0;
out:
	free(all);
	return err;
}

static int name_frames(struct view *view, const struct names_source *source)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct names_opts opts = {
		.addresses = view->opts.addresses,
		.lines = view->opts.details,
		.inlined = view->opts.inlined,
	};
	int err = names_new(&view->names);

	for (size_t i = 0; i < view->nr && !err; i++)
		err = names_want(view->names, frames,
				 stacks_frames(view->stacks, view->chosen[i], frames));
	return err ? err : names_resolve(view->names, source, &opts, view->labels);
}

static int make_remarks(struct view *view)
{
	char text[128];
	int err = 0;

	for (int status = 0; status < DWUNW_STATUS_NR && !err; status++) {
		snprintf(text, sizeof(text), "[stack incomplete: %s]",
			 dwunw_status_text((enum dwunw_status)status));
		err = labels_intern(view->labels, view->opts.details ? text : "[incomplete]", "",
				    &view->remarks[status]);
	}
	return err;
}

/* Of a process that comes again under the same number, both have one root. */
static int make_roots(struct view *view)
{
	const struct view_opts *opts = &view->opts;
	size_t nr = opts->live && opts->processes ? live_nr_processes(opts->live) : 0;
	int err = 0;

	if (nr < 2)
		return 0;
	view->roots = calloc(nr, sizeof(*view->roots));
	if (!view->roots)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++) {
		char *name = processes_label(opts->processes, live_process(opts->live, i).tgid);

		err = name ? labels_intern(view->labels, name, "", &view->roots[i]) : -ENOMEM;
		free(name);
	}
	return err;
}

int view_new(struct view **out, const struct stacks *stacks, const struct names_source *source,
	     const struct view_opts *opts)
{
	struct view *view = calloc(1, sizeof(*view));
	int err;

	*out = NULL;
	if (!view)
		return -ENOMEM;
	view->stacks = stacks;
	view->opts = *opts;
	err = choose(view);
	if (!err)
		err = labels_new(&view->labels);
	if (!err)
		err = make_remarks(view);
	if (!err)
		err = make_roots(view);
	if (!err)
		err = name_frames(view, source);
	if (err)
		view_free(view);
	else
		*out = view;
	return err;
}

size_t view_nr(const struct view *view)
{
	return view->nr;
}

const struct stack *view_stack(const struct view *view, size_t i)
{
	return stacks_get(view->stacks, view->chosen[i]);
}

/* Write the labels of @frame to @path, which has room for @room, from 1.  Returns how many. */
static size_t frame_labels(const struct view *view, const struct dwunw_frame *frame, uint32_t *path,
			   size_t room)
{
	size_t nr, nr_inlined;
	const uint32_t *labels = names_labels(view->names, frame, &nr);

	nr_inlined = nr <= room ? nr - 1 : room - 1;
	for (size_t i = 0; i < nr_inlined; i++)
		path[i] = labels[i];
	path[nr_inlined] = labels[nr - 1];
	return nr_inlined + 1;
}

/* The labels of stack @i without its process's, innermost first. */
static size_t stack_path(const struct view *view, size_t i, uint32_t *path)
{
	const struct stack *stack = view_stack(view, i);
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	size_t nr_frames = stacks_frames(view->stacks, view->chosen[i], frames), nr = 0;

	/* there is always room for a label of each, for the remark, and for the process */
	for (size_t at = 0; at < nr_frames; at++)
		nr += frame_labels(view, &frames[at], path + nr,
				   VIEW_MAX_PATH - 1 - nr - (nr_frames - at));
	if (stack->status != DWUNW_STATUS_ENDED || !nr)
		path[nr++] = view->remarks[stack->status];
	return nr;
}

size_t view_path(const struct view *view, size_t i, uint32_t path[VIEW_MAX_PATH])
{
	size_t first = view->roots != NULL, nr;

	if (first)
		path[0] = view->roots[view_stack(view, i)->process];
	nr = first + stack_path(view, i, path + first);
	if (view->opts.inverted)
		return nr;
	for (size_t a = first, b = nr - 1; a < b; a++, b--) {
		uint32_t label = path[a];

		path[a] = path[b];
		path[b] = label;
	}
	return nr;
}

const struct labels *view_labels(const struct view *view)
{
	return view->labels;
}

bool view_guessed(const struct view *view)
{
	return names_guessed(view->names);
}

size_t view_left_out(const struct view *view, struct live_amount *amount)
{
	*amount = view->left_out_amount;
	return view->left_out;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	names_free(view->names);
	labels_free(view->labels);
	free(view->chosen);
	free(view->roots);
	free(view);
}
