/* verdict_choice.c - see verdict_choice.h */
#include "report/context/verdict_choice.h"

#include "report/reach/verdicts.h"

/* Does the trace have a pass?  That is told by its index. */
static int has_pass(struct mlk_reader *trace, bool *has)
{
	const struct mlk_entry *entries;
	size_t nr;
	int err = mlk_reader_list(trace, &entries, &nr);

	*has = false;
	for (size_t i = 0; i < nr && !*has; i++)
		*has = entries[i].records == MLK_RECORD_PASS;
	return err;
}

int verdict_choice_find(struct verdict_choice *v, struct mlk_reader *trace,
			const struct block_filter *choice, bool starts_only)
{
	const uint64_t start_ns = mlk_reader_meta(trace)->start_ns;
	struct verdict_rules rules = {.starts_only = starts_only, .stop_ns = UINT64_MAX};
	struct mlk_reader *own = NULL;
	bool has;
	int err = has_pass(trace, &has);

	if (choice->until && choice->until_ns < UINT64_MAX - start_ns)
		rules.stop_ns = start_ns + choice->until_ns;
	if (!err && has)
		err = mlk_reader_clone(&own, trace);
	if (!err && has)
		err = verdicts_find(&v->verdicts, own, &rules);
	mlk_reader_free(own);
	return err;
}

static bool is_wanted(const void *arg, const struct live_block *block)
{
	const struct verdict_choice *v = arg;

	return v->wanted >> verdicts_of(v->verdicts, block) & 1;
}

void verdict_choice_use(const struct verdict_choice *v, struct block_filter *choice)
{
	if (!v->wanted || !v->verdicts)
		return;
	choice->only = is_wanted;
	choice->only_arg = v;
}

void verdict_choice_release(struct verdict_choice *v)
{
	verdicts_free(v->verdicts);
	v->verdicts = NULL;
}
