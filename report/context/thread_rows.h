/* thread_rows.h - threads with what they allocated, what of it was freed, and by which threads */
#ifndef REPORT_THREAD_ROWS_H
#define REPORT_THREAD_ROWS_H

#include "report/context/report_data.h"
#include "report/stats/thread_accounts.h"

/* A thread, or all that have a name.  Amounts are of the stacks shown; of a sample, estimates. */
struct thread_row {
	char *name;	    /* went through text_escape(); "" when not known */
	uint32_t tgid, tid; /* of the first */
	uint32_t threads;   /* how many it is */
	struct live_amount allocated, outstanding;
	struct live_amount freed_own, freed_others; /* of what it allocated: by itself, by others */
	struct live_amount lost;		    /* the same, of which no free was seen */
	struct live_amount took; /* what others had allocated, and this one freed */
	/* What of all this was only counted: allocated, and what of it is outstanding. */
	struct live_amount counted, counted_left;
	bool ended; /* its process went on */
};

/* What row @owner allocated and row @freer freed, numbers in thread_rows.all; rows by name can be
 * the same. */
struct thread_pair {
	uint32_t owner, freer; /* THREAD_ACCOUNTS_NOBODY: several, not kept which */
	struct live_amount freed;
};

/* All of a report. */
struct thread_rows {
	struct thread_row *all;
	size_t nr;
	/* Those of which anything is shown: most outstanding bytes first, then most allocated. */
	const struct thread_row **order;
	size_t nr_shown;
	union thread_pairs {
		INTERN_OF(struct thread_pair); /* most bytes first, none of a thread with itself */
	} pairs;
};

/* Make the rows of @export, of its view's stacks alone; with @by_name threads of one name are one.
 * Returns 0, or -ENOMEM and @rows is then empty. */
int thread_rows_init(struct thread_rows *rows, const struct report_data *export, bool by_name);

/* Release what @rows holds; an empty one is allowed. */
void thread_rows_release(struct thread_rows *rows);

#endif
