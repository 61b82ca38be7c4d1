/* verdict_choice.h - the pointers of a trace, and blocks that are chosen by them */
#ifndef REPORT_VERDICT_CHOICE_H
#define REPORT_VERDICT_CHOICE_H

#include "report/live/block_filter.h"

struct mlk_reader;
struct root_choice;
struct verdicts;

/* All zero: nothing is chosen by them. */
struct verdict_choice {
	/* As it was requested: */
	uint32_t wanted;	   /* bits 1 << enum block_verdict; 0: all blocks */
	bool starts_only;	   /* a word that points into a block holds none */
	uint64_t tag_mask;	   /* bits of a word that are no part of its address */
	struct root_choice *roots; /* borrowed; which are found is set */
	size_t nr_roots;
	bool holders; /* who holds what is asked for, too */
	/* What was found: */
	struct verdicts *verdicts; /* NULL: the trace has no whole snapshot */
	uint64_t end_ns;	   /* of the last snapshot, CLOCK_MONOTONIC */
};

/* Judge the blocks of @trace, which others may read meanwhile, up to the moment that @choice says.
 * Returns 0, -ENOMEM or the -errno of read(2). */
int verdict_choice_find(struct verdict_choice *v, struct mlk_reader *trace,
			const struct block_filter *choice);

/* Why there are no verdicts, as enum verdict_lack has it.  *@first_ns is the time of the first
 * snapshot where @choice ends before; *@exited: the recording ended with its process.  Returns as
 * verdict_choice_find(). */
int verdict_choice_explain(struct mlk_reader *trace, const struct block_filter *choice, int *lack,
			   uint64_t *first_ns, bool *exited);

/* Have @choice, which borrows @v, choose only blocks that are wanted; and where it is asked who
 * holds them, end with the snapshots. */
void verdict_choice_use(const struct verdict_choice *v, struct block_filter *choice,
			uint64_t start_ns);

/* Forget the verdicts. */
void verdict_choice_release(struct verdict_choice *v);

#endif
