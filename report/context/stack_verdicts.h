/* stack_verdicts.h - what is outstanding of each stack, by what the pointers in memory say of it */
#ifndef REPORT_STACK_VERDICTS_H
#define REPORT_STACK_VERDICTS_H

#include "report/reach/verdicts.h"
#include "report/replay/replay.h"

/* Of all stacks of a replay, by number. */
struct stack_verdicts {
	struct live_amount (*all)[VERDICT_NR];
	size_t nr;
};

/* Sum up the chosen blocks of @leaks, and set what its stacks have lost.  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int stack_verdicts_new(struct stack_verdicts **out, const struct replay *leaks,
		       const struct verdicts *verdicts);

/* What of stack @number is lost, with what is lost with it. */
struct live_amount stack_verdicts_lost(const struct stack_verdicts *v, uint32_t number);

/* NULL is allowed. */
void stack_verdicts_free(struct stack_verdicts *v);

#endif
