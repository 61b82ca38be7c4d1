/* unmatched_filters.c - see unmatched.h */
#include "report/filter/unmatched_filters.h"

#include "report/filter/stack_filter.h"

struct search {
	const char *wanted;
	bool found;
};

static void note_thread(void *arg, uint32_t tid, const char *name)
{
	struct search *search = arg;

	search->found = search->found || choice_is_thread(search->wanted, tid, name);
}

bool unmatched_thread(const struct leaks *leaks)
{
	const struct chosen *chosen = leaks_chosen(leaks);
	struct search search = {.wanted = chosen->thread};

	thread_names_each(chosen->threads, note_thread, &search);
	/* the name of a thread may be missing, and its blocks be there */
	for (size_t i = 0; i < stacks_nr(leaks_stacks(leaks)) && !search.found; i++)
		search.found = stacks_get(leaks_stacks(leaks), (uint32_t)i)->allocated.blocks > 0;
	return !search.found;
}

bool unmatched_module(const struct leaks *leaks, const char *pattern)
{
	const struct images *images = leaks_images(leaks);

	for (size_t i = 0; i < images_nr(images); i++)
		if (sieve_is_module(pattern, images_path(images, (uint32_t)i)))
			return false;
	/* memory of no file goes by an empty name */
	return !sieve_is_module(pattern, "");
}

/* Has any stack of @names, which are resolved, what @sieve lets through? */
static bool any_passes(const struct stacks *stacks, const struct sieve *sieve,
		       struct sieve_stack *stack)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];

	stack->frames = frames;
	for (size_t i = 0; i < stacks_nr(stacks); i++) {
		stack->stack = stacks_get(stacks, (uint32_t)i);
		stack->nr = stacks_frames(stacks, (uint32_t)i, frames);
		if (sieve_passes(sieve, stack))
			return true;
	}
	return false;
}

/* Name the frames of all stacks. */
static int name_all(struct names *names, const struct stacks *stacks,
		    const struct names_source *source, struct labels *labels)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct names_opts opts = {0};
	int err = 0;

	for (size_t i = 0; i < stacks_nr(stacks) && !err; i++)
		err = names_want(names, frames, stacks_frames(stacks, (uint32_t)i, frames));
	return err ? err : names_resolve(names, source, &opts, labels);
}

int unmatched_function(const struct leaks *leaks, const struct names_source *source,
		       const char *function, bool *is)
{
	const struct stacks *stacks = leaks_stacks(leaks);
	struct sieve_opts opts = {.function = function};
	struct labels *labels = NULL;
	struct names *names = NULL;
	struct sieve *sieve;
	int err = sieve_new(&sieve, &opts);

	*is = false;
	if (!err)
		err = labels_new(&labels);
	if (!err)
		err = names_new(&names);
	if (!err)
		err = name_all(names, stacks, source, labels);
	if (!err)
		*is = !any_passes(
			stacks, sieve,
			&(struct sieve_stack){.names = names, .labels = labels, .source = source});
	names_free(names);
	labels_free(labels);
	sieve_free(sieve);
	return err;
}
