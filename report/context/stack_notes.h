/* stack_notes.h - what is printed about each stack beside its amounts: how old its outstanding
 * blocks are, which threads allocated them, and when it was called */
#ifndef REPORT_STACK_NOTES_H
#define REPORT_STACK_NOTES_H

#include <stdio.h>

#include "report/context/ages.h"
#include "report/context/alloc_threads.h"
#include "report/context/report_data.h"

/* Of all stacks of a report. */
struct stack_notes {
	struct ages *ages;
	struct alloc_threads *takers;
};

/* Find it out for @leaks, which are borrowed until stack_notes_release().  Returns 0, or
 * -ENOMEM and @notes is then empty. */
int stack_notes_init(struct stack_notes *notes, const struct replay *leaks);

/* Print the lines of stack @i of the view, each after @indent: its ages, if anything of it is
 * outstanding, and when it was called by whom.  Errors are left in @out for ferror(). */
void stack_notes_print(FILE *out, const struct report_data *export, const struct stack_notes *notes,
		       size_t i, const char *indent);

/* Release what @notes holds; an empty one is allowed. */
void stack_notes_release(struct stack_notes *notes);

#endif
