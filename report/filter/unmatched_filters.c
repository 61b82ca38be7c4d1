/* unmatched_filters.c - see unmatched_filters.h */
#include "report/filter/unmatched_filters.h"

#include "report/filter/stack_filter.h"

struct search {
	const char *wanted;
	bool found;
};

static void note_thread(void *arg, uint32_t tid, const char *name)
{
	struct search *search = arg;

	search->found = search->found || block_filter_is_thread(search->wanted, tid, name);
}

bool unmatched_filters_thread(const struct replay *leaks)
{
	const struct chosen *chosen = replay_chosen(leaks);
	struct search search = {.wanted = chosen->thread};

	thread_names_each(chosen->threads, note_thread, &search);
	/* the name of a thread may be missing, and its blocks be there */
	for (size_t i = 0; i < stacks_nr(replay_stacks(leaks)) && !search.found; i++)
		search.found = stacks_get(replay_stacks(leaks), (uint32_t)i)->allocated.blocks > 0;
	return !search.found;
}

bool unmatched_filters_module(const struct replay *leaks, const char *pattern)
{
	const struct trace_modules *images = replay_modules(leaks);

	for (size_t i = 0; i < trace_modules_nr(images); i++)
		if (stack_filter_is_module(pattern, trace_modules_path(images, (uint32_t)i)))
			return false;
	/* memory of no file goes by an empty name */
	return !stack_filter_is_module(pattern, "");
}

/* Has any stack of @names, which are resolved, what @sieve lets through? */
static bool any_passes(const struct stacks *stacks, const struct stack_filter *sieve,
		       struct stack_filter_stack *stack)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];

	stack->frames = frames;
	for (size_t i = 0; i < stacks_nr(stacks); i++) {
		stack->stack = stacks_get(stacks, (uint32_t)i);
		stack->nr = stacks_frames(stacks, (uint32_t)i, frames);
		if (stack_filter_passes(sieve, stack))
			return true;
	}
	return false;
}

/* Name the frames of all stacks. */
static int name_all(struct symbols *names, const struct stacks *stacks,
		    const struct symbols_source *source, struct labels *labels)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct symbols_opts opts = {0};
	int err = 0;

	for (size_t i = 0; i < stacks_nr(stacks) && !err; i++)
		err = symbols_want(names, frames, stacks_frames(stacks, (uint32_t)i, frames));
	return err ? err : symbols_resolve(names, source, &opts, labels);
}

int unmatched_filters_function(const struct replay *leaks, const struct symbols_source *source,
			       const char *function, bool *is)
{
	const struct stacks *stacks = replay_stacks(leaks);
	struct stack_filter_opts opts = {.function = function};
	struct labels *labels = NULL;
	struct symbols *names = NULL;
	struct stack_filter *sieve;
	int err = stack_filter_new(&sieve, &opts);

	*is = false;
	if (!err)
		err = labels_new(&labels);
	if (!err)
		err = symbols_new(&names);
	if (!err)
		err = name_all(names, stacks, source, labels);
	if (!err)
		*is = !any_passes(stacks, sieve,
				  &(struct stack_filter_stack){
					  .names = names, .labels = labels, .source = source});
	symbols_free(names);
	labels_free(labels);
	stack_filter_free(sieve);
	return err;
}
