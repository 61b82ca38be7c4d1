/* stack_notes.h - what is printed about each stack beside its amounts: how old its outstanding
 * blocks are, which threads allocated them, and when it was called */
#ifndef REPORT_STACK_NOTES_H
#define REPORT_STACK_NOTES_H

#include <stdio.h>

#include "report/base/hash_index.h"
#include "report/context/report_data.h"
#include "report/replay/replay.h"

/* Classes of age, from the youngest. */
#define AGES_NR 8

/* The class of blocks that are @age_ns nanoseconds old. */
size_t ages_class(uint64_t age_ns);

/* What is said of class @i (below AGES_NR): "< 1 s", ... */
const char *ages_text(size_t i);

/* From which age on blocks are in class @i, in nanoseconds. */
uint64_t ages_from_ns(size_t i);

/* What is outstanding of what one thread got by one stack. */
struct taker {
	uint32_t stack; /* its number */
	uint32_t tid;
	uint32_t tgid;
	struct live_amount amount; /* of a sampled trace, an estimate */
};

/* Of all stacks of a report.  The takers are by stack, of each the one with the most bytes first,
 * and of the same the one with the lower tid. */
struct stack_notes {
	uint64_t end_ns;
	struct live_amount (
		*ages)[AGES_NR]; /* by number of stack: what is outstanding of which age */
	const struct thread_names *threads;
	INTERN_OF(struct taker);
	int err; /* only in stack_notes_init() */
};

/* Find it out for @leaks, which are borrowed until stack_notes_release().  Returns 0, or
 * -ENOMEM and @notes is then empty. */
int stack_notes_init(struct stack_notes *notes, const struct replay *leaks);

/* Print the lines of stack @i of the view, each after @indent: its ages, if anything of it is
 * outstanding, and when it was called by whom.  Errors are left in @out for ferror(). */
void stack_notes_print(FILE *out, const struct report_data *export, const struct stack_notes *notes,
		       size_t i, const char *indent);

/* Print in a line behind @indent that of a stack, or of several, @lost is lost, if something is. */
void stack_notes_lost(FILE *out, const struct report_data *export, struct live_amount lost,
		      const char *indent);

/* Release what @notes holds; an empty one is allowed. */
void stack_notes_release(struct stack_notes *notes);

/* The *@nr takers of stack @number; valid until stack_notes_release(). */
const struct taker *stack_notes_takers(const struct stack_notes *notes, uint32_t number,
				       size_t *nr);

#endif
