/* stack_filter.c - see stack_filter.h */
#include "report/filter/stack_filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "report/name/short_name.h"
#include "report/name/stack_id.h"

struct stack_filter {
	struct stack_filter_opts opts;
	regex_t function;
};

int stack_filter_new(struct stack_filter **out, const struct stack_filter_opts *opts)
{
	struct stack_filter *sieve = calloc(1, sizeof(*sieve));
	int err = 0;

	*out = NULL;
	if (!sieve)
		return -ENOMEM;
	sieve->opts = *opts;
	if (opts->function)
		err = regcomp(&sieve->function, opts->function, REG_EXTENDED | REG_NOSUB);
	if (err) {
		free(sieve);
		return err == REG_ESPACE ? -ENOMEM : -EINVAL;
	}
	*out = sieve;
	return 0;
}

bool stack_filter_wants_names(const struct stack_filter *sieve)
{
	return sieve->opts.module || sieve->opts.function || sieve->opts.suppressions ||
	       sieve->opts.by_id;
}

bool stack_filter_has_enough(const struct stack_filter *sieve, const struct stack *stack)
{
	return sieve->opts.any_amount ||
	       (stack->bytes >= sieve->opts.min_bytes && stack->blocks >= sieve->opts.min_blocks);
}

bool stack_filter_is_module(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(pattern, path, 0) || (slash && !fnmatch(pattern, slash + 1, 0));
}

static bool has_module(const struct stack_filter *sieve, const struct stack_filter_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++)
		if (stack_filter_is_module(sieve->opts.module,
					   symbols_module_path(stack->source, &stack->frames[i])))
			return true;
	return false;
}

/* Does it match @name, whole or as it is shown? */
static bool is_function(const struct stack_filter *sieve, const char *name)
{
	char *shown;
	bool is;

	if (!name || !regexec(&sieve->function, name, 0, NULL, 0))
		return name != NULL;
	if (!strchr(name, '<'))
		return false;
	shown = short_name(name);
	is = shown && !regexec(&sieve->function, shown, 0, NULL, 0);
	free(shown);
	return is;
}

static bool has_function(const struct stack_filter *sieve, const struct stack_filter_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++) {
		const struct dwunw_symbol *symbol = symbols_symbol(stack->names, &stack->frames[i]);
		size_t nr;
		const uint32_t *labels = symbols_labels(stack->names, &stack->frames[i], &nr);

		/* the label may have an offset behind the name */
		if (is_function(sieve, symbol->function) ||
		    is_function(sieve, stack->labels->all[labels[nr - 1]].name))
			return true;
		for (size_t at = 0; at < symbol->nr_inlined; at++)
			if (is_function(sieve, symbol->inlined[at].function))
				return true;
	}
	return false;
}

static bool is_suppressed(const struct stack_filter *sieve, const struct stack_filter_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++) {
		const struct dwunw_frame *frame = &stack->frames[i];
		const char *module = symbols_module_path(stack->source, frame);
		const struct dwunw_symbol *symbol = symbols_symbol(stack->names, frame);
		struct suppressions *all = sieve->opts.suppressions;
		struct live_amount amount = stack_outstanding(stack->stack);

		for (size_t at = 0; at < symbol->nr_inlined; at++)
			if (suppressions_match(all, amount, symbol->inlined[at].function,
					       symbol->inlined[at].file, NULL))
				return true;
		if (suppressions_match(all, amount, symbol->function, symbol->file, module))
			return true;
	}
	return false;
}

bool stack_filter_passes(const struct stack_filter *sieve, const struct stack_filter_stack *stack)
{
	return (!sieve->opts.by_id ||
		stack_id(stack->source, stack->frames, stack->nr) == sieve->opts.id) &&
	       (!sieve->opts.module || has_module(sieve, stack)) &&
	       (!sieve->opts.function || has_function(sieve, stack)) &&
	       (!sieve->opts.suppressions || !is_suppressed(sieve, stack));
}

int stack_filter_check(const char *function)
{
	struct stack_filter_opts opts = {.function = function};
	struct stack_filter *sieve;
	int err = stack_filter_new(&sieve, &opts);

	stack_filter_free(sieve);
	return err;
}

void stack_filter_free(struct stack_filter *sieve)
{
	if (!sieve)
		return;
	if (sieve->opts.function)
		regfree(&sieve->function);
	free(sieve);
}

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
	const struct chosen *chosen = &leaks->chosen;
	struct search search = {.wanted = chosen->thread};

	thread_names_each(chosen->threads, note_thread, &search);
	/* the name of a thread may be missing, and its blocks be there */
	for (size_t i = 0; i < leaks->stacks->nr && !search.found; i++)
		search.found = leaks->stacks->all[i].allocated.blocks > 0;
	return !search.found;
}

bool unmatched_filters_module(const struct replay *leaks, const char *pattern)
{
	const struct trace_modules *images = leaks->images;

	for (size_t i = 0; i < images->nr; i++)
		if (stack_filter_is_module(pattern, images->all[i].path))
			return false;
	/* memory of no file goes by an empty name */
	return !stack_filter_is_module(pattern, "");
}

/* Has any stack of @names, which are resolved, what @sieve lets through? */
static bool any_passes(const struct stacks *stacks, const struct stack_filter *sieve,
		       struct stack_filter_stack stack)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];

	stack.frames = frames;
	for (size_t i = 0; i < stacks->nr; i++) {
		stack.stack = &stacks->all[i];
		stack.nr = stacks_frames(stacks, (uint32_t)i, frames);
		if (stack_filter_passes(sieve, &stack))
			return true;
	}
	return false;
}

/* Name the frames of all stacks. */
static int name_all_stacks(struct symbols *names, const struct stacks *stacks,
			   const struct symbols_source *source, struct labels *labels)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct symbols_opts opts = {0};
	int err = 0;

	for (size_t i = 0; i < stacks->nr && !err; i++)
		err = symbols_want(names, frames, stacks_frames(stacks, (uint32_t)i, frames));
	return err ? err : symbols_resolve(names, source, &opts, labels);
}

int unmatched_filters_function(const struct replay *leaks, const struct symbols_source *source,
			       const char *function, bool *is)
{
	const struct stacks *stacks = leaks->stacks;
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
		err = name_all_stacks(names, stacks, source, labels);
	if (!err)
		*is = !any_passes(stacks, sieve,
				  (struct stack_filter_stack){
					  .names = names, .labels = labels, .source = source});
	symbols_free(names);
	labels_free(labels);
	stack_filter_free(sieve);
	return err;
}
