/* thread_accounts.h - what each thread allocated, and which threads freed it, over a replay
 *
 * Sums are kept by stack as well, because options choose among those when the replay is over.
 */
#ifndef REPORT_THREAD_ACCOUNTS_H
#define REPORT_THREAD_ACCOUNTS_H

#include "report/base/hash_index.h"
#include "report/live/live.h"

#define THREAD_ACCOUNTS_MOST   (2u << 20) /* sums by stack; then those of all stacks are one */
#define THREAD_ACCOUNTS_STACK  UINT32_MAX /* the number of that one */
#define THREAD_ACCOUNTS_NOBODY UINT32_MAX /* as a thread's number: not kept which one */

/* A thread; of a number that came again in its process, all are one. */
struct thread_id {
	uint32_t tgid, tid;
};

/* Blocks of one stack that the thread @owner allocated and, where it is about frees, @freer freed:
 * numbers of threads.  The sums of other kinds are where both are the same. */
struct thread_account {
	uint32_t stack, owner, freer;
	struct live_amount allocated, freed;
	struct live_amount lost; /* no free was seen: address allocated again, or gone by an exec */
};

/* What was counted of a thread, or of all that had its number one after the other, and is not in
 * the trace; as the trace says last. */
struct thread_count {
	struct thread_id id;
	uint32_t flags; /* enum mlk_account_flag */
	struct live_amount allocated, freed, freed_by_others;
	struct thread_closed {
		struct live_amount allocated, freed, freed_by_others;
	} closed; /* what of it is of accounts that no later one replaces */
};

/* All zero is before the first event. */
struct thread_accounts {
	union intern_threads {
		INTERN_OF(struct thread_id);
	} threads;
	union intern_sums {
		INTERN_OF(struct thread_account);
	} sums;
	union intern_counts {
		INTERN_OF(struct thread_count);
	} counts;
	uint64_t stop_ns; /* what was counted later does not matter */
	uint32_t most;	  /* sums by stack that are kept */
	bool crowded;	  /* there were more */
	size_t last[2];	  /* sums of the last allocation and free: often those of the next, too */
	bool failed;
};

/* No events yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int thread_accounts_new(struct thread_accounts **out);

/* What the trace says of a thread.  Returns 0 or -ENOMEM. */
int thread_accounts_count(struct thread_accounts *accounts, const struct mlk_account *account);

/* For struct live_watch, with a struct thread_accounts as its arg. */
void thread_accounts_changed(void *accounts, const struct live_change *change);

/* The replay is over.  Returns 0, or -ENOMEM when memory was short at any time. */
int thread_accounts_finish(const struct thread_accounts *accounts);

/* The number of a thread of @accounts.  False: it is none. */
bool thread_accounts_find(const struct thread_accounts *accounts, uint32_t tgid, uint32_t tid,
			  uint32_t *number);

/* Release @accounts; NULL is allowed. */
void thread_accounts_free(struct thread_accounts *accounts);

#endif
