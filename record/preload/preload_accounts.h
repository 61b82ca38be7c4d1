/* preload_accounts.h - what the preloaded library counts of threads that are not recorded, on its
 * way into the trace */
#ifndef RECORD_PRELOAD_ACCOUNTS_H
#define RECORD_PRELOAD_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/trace.h"
#include "record/filter/accounts.h"
#include "record/libpreload/account.h"

/* What the accounts do not say of themselves; called with ctx, but for is_gone(). */
struct preload_accounts_opts {
	struct preload_header *memory;	/* borrowed */
	struct preload_account *shared; /* in it; NULL: threads are not counted */
	struct event_choices *choices;	/* the same */
	bool (*is_gone)(uint32_t tgid, uint32_t tid);
	bool (*has_ended)(void *ctx, uint32_t tgid); /* the process */
	/* The name of thread @tid, as it says: hostile bytes. */
	void (*named)(void *ctx, uint32_t tgid, uint32_t tid, const char *name);
	void *ctx;
};

/* All that is known of the accounts in the memory shared with the library, where hostile bytes
 * stand. */
struct preload_accounts {
	struct preload_accounts_opts opts;
	struct accounts sums; /* owned */
	uint32_t made;	      /* header.accounts_made when they were read last */
	uint64_t skipped[PRELOAD_NR_SKIPS],
		skipped_bytes[PRELOAD_NR_SKIPS]; /* of those taken out */
	struct {
		uint64_t retired_ns; /* when its thread was seen to have ended; 0: not */
		bool named;
		bool ended; /* its thread did, and its process did not with it */
	} state[PRELOAD_MAX_ACCOUNTS];
};

/* Read all of them, if it is time or @last, write to the trace what has changed, and take those out
 * whose threads have ended for a while.  Returns 0, -ENOMEM or what the writer returned. */
int preload_accounts_write(struct preload_accounts *pa, struct mlk_writer *writer, bool last);

/* Process @tgid has ended: tell the names of its threads. */
void preload_accounts_name(struct preload_accounts *pa, uint32_t tgid);

/* Read them without writing, where the library has made so many that the table might become full.
 * Returns 0 or -ENOMEM. */
int preload_accounts_keep_up(struct preload_accounts *pa);

/* Add what was left out so far to @losses. */
void preload_accounts_losses(const struct preload_accounts *pa, struct mlk_losses *losses);

#endif
