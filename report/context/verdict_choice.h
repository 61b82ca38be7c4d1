/* verdict_choice.h - the pointers of a trace, and blocks that are chosen by them */
#ifndef REPORT_VERDICT_CHOICE_H
#define REPORT_VERDICT_CHOICE_H

#include "report/live/block_filter.h"

struct mlk_reader;
struct verdicts;

/* All zero: nothing is chosen by them. */
struct verdict_choice {
	struct verdicts *verdicts; /* NULL: the trace has no whole snapshot */
	uint32_t wanted;	   /* bits 1 << enum block_verdict; 0: all blocks */
};

/* Judge the blocks of @trace, which others may read meanwhile, up to the moment that @choice says.
 * @starts_only: a word that points into a block holds none.  Returns 0, -ENOMEM or the -errno of
 * read(2). */
int verdict_choice_find(struct verdict_choice *v, struct mlk_reader *trace,
			const struct block_filter *choice, bool starts_only);

/* Have @choice, which borrows @v, choose only blocks that are wanted. */
void verdict_choice_use(const struct verdict_choice *v, struct block_filter *choice);

/* Forget the verdicts. */
void verdict_choice_release(struct verdict_choice *v);

#endif
