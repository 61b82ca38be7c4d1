/* stack_verdicts.c - see stack_verdicts.h */
#include "report/context/stack_verdicts.h"

#include <errno.h>
#include <stdlib.h>

#include "report/live/sampling.h"

struct summing {
	struct stack_verdicts *to;
	const struct verdicts *verdicts;
};

static void add_block(void *arg, const struct live_block *block)
{
	struct summing *s = arg;

	if (block->stack < s->to->nr)
		live_amount_add(&s->to->all[block->stack][verdicts_of(s->verdicts, block)],
				sampling_amount(block));
}

int stack_verdicts_new(struct stack_verdicts **out, const struct replay *leaks,
		       const struct verdicts *verdicts)
{
	struct stack_verdicts *v = calloc(1, sizeof(*v));
	struct summing summing = {v, verdicts};

	*out = NULL;
	if (!v)
		return -ENOMEM;
	v->nr = leaks->stacks->nr;
	v->all = calloc(v->nr + 1, sizeof(*v->all));
	if (!v->all) {
		free(v);
		return -ENOMEM;
	}
	chosen_each(&leaks->chosen, leaks->live, add_block, &summing);
	for (uint32_t i = 0; i < v->nr; i++)
		leaks->stacks->all[i].lost = stack_verdicts_lost(v, i);
	*out = v;
	return 0;
}

struct live_amount stack_verdicts_lost(const struct stack_verdicts *v, uint32_t number)
{
	struct live_amount sum = v->all[number][VERDICT_LOST];

	live_amount_add(&sum, v->all[number][VERDICT_LOST_WITH]);
	return sum;
}

void stack_verdicts_free(struct stack_verdicts *v)
{
	if (v)
		free(v->all);
	free(v);
}
