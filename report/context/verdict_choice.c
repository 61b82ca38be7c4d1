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

static struct verdict_rules rules_of(const struct block_filter *choice, uint64_t start_ns)
{
	struct verdict_rules rules = {.stop_ns = UINT64_MAX};

	if (choice->until && choice->until_ns < UINT64_MAX - start_ns)
		rules.stop_ns = start_ns + choice->until_ns;
	return rules;
}

int verdict_choice_find(struct verdict_choice *v, struct mlk_reader *trace,
			const struct block_filter *choice)
{
	struct verdict_rules rules = rules_of(choice, mlk_reader_meta(trace)->start_ns);
	struct mlk_reader *own = NULL;
	bool has;
	int err = has_pass(trace, &has);

	rules.starts_only = v->starts_only;
	rules.tag_mask = v->tag_mask;
	rules.roots = v->roots;
	rules.nr_roots = v->nr_roots;
	rules.holders = v->holders;
	if (!err && has)
		err = mlk_reader_clone(&own, trace);
	if (!err && has)
		err = verdicts_find(&v->verdicts, own, &rules);
	mlk_reader_free(own);
	for (size_t i = 0; v->verdicts && i < verdicts_nr(v->verdicts); i++)
		if (verdicts_process(v->verdicts, i)->end_ns > v->end_ns)
			v->end_ns = verdicts_process(v->verdicts, i)->end_ns;
	return err;
}

int verdict_choice_explain(struct mlk_reader *trace, const struct block_filter *choice, int *lack,
			   uint64_t *first_ns, bool *exited)
{
	const struct verdict_rules rules = rules_of(choice, mlk_reader_meta(trace)->start_ns);
	enum verdict_lack found = VERDICT_LACKS_NOTHING;
	struct mlk_reader *own = NULL;
	int err = mlk_reader_clone(&own, trace);

	if (!err)
		err = verdicts_explain(own, &rules, &found, first_ns);
	*lack = found;
	*exited = !err && mlk_reader_condition(own)->ended &&
		  mlk_reader_condition(own)->reason == MLK_END_EXITED;
	mlk_reader_free(own);
	return err;
}

static bool is_wanted(const void *arg, const struct live_block *block)
{
	const struct verdict_choice *v = arg;

	return v->wanted >> verdicts_of(v->verdicts, block) & 1;
}

void verdict_choice_use(const struct verdict_choice *v, struct block_filter *choice,
			uint64_t start_ns)
{
	if (v->holders && v->verdicts) {
		choice->until = true;
		choice->until_ns = v->end_ns > start_ns ? v->end_ns - start_ns : 0;
	}
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
