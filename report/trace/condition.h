/* condition.h - the state of a trace over several passes */
#ifndef REPORT_CONDITION_H
#define REPORT_CONDITION_H

#include "format/reader.h"

/* Make @all also what @pass says: a pass sees only the damage in the chunks that it reads, so the
 * worst of all passes is kept.  All zero is before the first. */
void condition_merge(struct mlk_condition *all, const struct mlk_condition *pass);

#endif
