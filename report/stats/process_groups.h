/* process_groups.h - processes of one program are shown together, those that have ended apart
 *
 * A server forks a process for each connection: what each of them holds says little, and what they
 * hold together says where to look.  What an ended one held is gone.
 */
#ifndef REPORT_PROCESS_GROUPS_H
#define REPORT_PROCESS_GROUPS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/stats/processes.h"

/* Processes of one name that are, or are not, all ended. */
struct process_group {
	uint32_t first; /* its first process, by number */
	size_t nr;
	bool gone;  /* they have exited, and others are there still */
	bool ended; /* the same of one that is a group of its own */
	struct live_totals totals;
};

/* All of a trace, in the order of their first processes. */
struct process_groups {
	const struct thread_names *names;
	const struct live *live;
	struct process_group *all;
	size_t nr;
	bool each_ended; /* each is a group of its own, and is to be marked if it has exited */
	uint32_t *of;	 /* the group of each process, by number */
};

/* Group the processes of @live, whose names are @names; both are borrowed until
 * process_groups_release().  With @each every process is a group of its own, and none is gone.
 * @groups is to be released in any case.  Returns 0 or -ENOMEM. */
int process_groups_init(struct process_groups *groups, const struct thread_names *names,
			const struct live *live, bool each);

/* What a tree says of group @i: "sh (1234)", or of several "postgres (7 processes)", of those that
 * are gone "postgres (71 exited processes)", or "sh (1234, exited)".  Returns a string that the
 * caller frees, or NULL when there is no memory. */
char *process_groups_label(const struct process_groups *groups, size_t i);

/* If there are several processes, print a line for each group, most outstanding bytes first (with
 * @tgid not 0: of those that process has), and of very many one for those with the least.  Returns
 * 0 or -ENOMEM. */
int process_groups_print(FILE *out, const struct process_groups *groups, uint32_t tgid);

/* Release what @groups holds. */
void process_groups_release(struct process_groups *groups);

#endif
