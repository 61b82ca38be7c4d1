/* stack_filter.c - see sieve.h */
#include "report/filter/stack_filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

struct sieve {
	struct sieve_opts opts;
	regex_t function;
};

int sieve_new(struct sieve **out, const struct sieve_opts *opts)
{
	struct sieve *sieve = calloc(1, sizeof(*sieve));
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

bool sieve_wants_names(const struct sieve *sieve)
{
	return sieve->opts.module || sieve->opts.function || sieve->opts.suppressions;
}

bool sieve_has_enough(const struct sieve *sieve, const struct stack *stack)
{
	return sieve->opts.any_amount ||
	       (stack->bytes >= sieve->opts.min_bytes && stack->blocks >= sieve->opts.min_blocks);
}

bool sieve_is_module(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(pattern, path, 0) || (slash && !fnmatch(pattern, slash + 1, 0));
}

static bool has_module(const struct sieve *sieve, const struct sieve_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++)
		if (sieve_is_module(sieve->opts.module,
				    names_module_path(stack->source, &stack->frames[i])))
			return true;
	return false;
}

static bool is_function(const struct sieve *sieve, const char *name)
{
	return name && !regexec(&sieve->function, name, 0, NULL, 0);
}

static bool has_function(const struct sieve *sieve, const struct sieve_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++) {
		const struct dwunw_symbol *symbol = names_symbol(stack->names, &stack->frames[i]);
		size_t nr;
		const uint32_t *labels = names_labels(stack->names, &stack->frames[i], &nr);

		if (is_function(sieve, labels_get(stack->labels, labels[nr - 1])->name))
			return true;
		for (size_t at = 0; at < symbol->nr_inlined; at++)
			if (is_function(sieve, symbol->inlined[at].function))
				return true;
	}
	return false;
}

static bool is_suppressed(const struct sieve *sieve, const struct sieve_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++) {
		const struct dwunw_frame *frame = &stack->frames[i];
		const char *module = names_module_path(stack->source, frame);
		const struct dwunw_symbol *symbol = names_symbol(stack->names, frame);
		struct suppressions *all = sieve->opts.suppressions;
		struct live_amount amount = {stack->stack->blocks, stack->stack->bytes};

		for (size_t at = 0; at < symbol->nr_inlined; at++)
			if (suppressions_match(all, amount, symbol->inlined[at].function,
					       symbol->inlined[at].file, NULL))
				return true;
		if (suppressions_match(all, amount, symbol->function, symbol->file, module))
			return true;
	}
	return false;
}

bool sieve_passes(const struct sieve *sieve, const struct sieve_stack *stack)
{
	return (!sieve->opts.module || has_module(sieve, stack)) &&
	       (!sieve->opts.function || has_function(sieve, stack)) &&
	       (!sieve->opts.suppressions || !is_suppressed(sieve, stack));
}

int sieve_check(const char *function)
{
	struct sieve_opts opts = {.function = function};
	struct sieve *sieve;
	int err = sieve_new(&sieve, &opts);

	sieve_free(sieve);
	return err;
}

void sieve_free(struct sieve *sieve)
{
	if (!sieve)
		return;
	if (sieve->opts.function)
		regfree(&sieve->function);
	free(sieve);
}
