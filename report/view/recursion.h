/* recursion.h - calls that repeat along a stack, shown once with how often */
#ifndef REPORT_RECURSION_H
#define REPORT_RECURSION_H

#include <stdio.h>

#include "report/name/labels.h"
#include "report/view/tree.h"
#include "report/view/view.h"

#define RECURSION_MAX_PERIOD 8 /* functions that call each other in turn */

/*
 * How many of the @nr @keys from @at on (below @nr) are the sequence that repeats there most, and
 * in *@times how often it comes in a row.  One function comes twice at least, several in turn three
 * times.  Where nothing repeats it is 1, and *@times is 1.
 */
size_t recursion_at(const uint32_t *keys, size_t nr, size_t at, size_t *times);

/* Print the line below @period calls that are there @times, behind @indent; nothing if that is
 * once. */
void recursion_print(FILE *out, const char *indent, size_t period, size_t times);

/* A path without repetitions, to be added to a tree. */
struct recursion_path {
	uint32_t labels[VIEW_MAX_PATH];
	struct tree_repeat repeats[VIEW_MAX_PATH]; /* of each label */
	size_t nr;
};

/* What folds paths of some labels. */
struct recursion {
	struct labels *labels;
	struct label_functions functions; /* labels that are added later are of several */
};

/* Begin to fold paths of @labels (borrowed until recursion_release()).  @recursion is to be
 * released in any case.  Returns 0 or -ENOMEM. */
int recursion_init(struct recursion *recursion, struct labels *labels);

/* Fold the @nr labels of @path, which were there when it began (borrowed as long as @out is used)
 * into @out.  What several functions repeat in turn is one label, "f > g", which is added to the
 * labels if it is new. Returns 0 or -ENOMEM. */
int recursion_fold(struct recursion *recursion, const uint32_t *path, size_t nr,
		   struct recursion_path *out);

/* Release what @recursion holds, not its labels. */
void recursion_release(struct recursion *recursion);

#endif
