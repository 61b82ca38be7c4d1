/* replay.h - replay a trace: unwind every allocation, and find what is still outstanding at the end
 */
#ifndef REPORT_REPLAY_H
#define REPORT_REPLAY_H

#include "format/reader.h"
#include "report/cache/stack_cache.h"
#include "report/decode/batch.h"
#include "report/live/address_history.h"
#include "report/live/block_filter.h"
#include "report/live/live.h"
#include "report/live/sampling.h"
#include "report/live/suspect_blocks.h"
#include "report/replay/overruns.h"
#include "report/stats/growth.h"
#include "report/stats/processes.h"
#include "report/stats/stack_stats.h"
#include "report/stats/stacks.h"
#include "report/stats/thread_accounts.h"
#include "report/trace/address_spaces.h"
#include "report/trace/memory_samples.h"
#include "report/trace/origins.h"
#include "report/trace/trace_marks.h"
#include "report/trace/trace_modules.h"

/* All that was learned of one trace, read by all of report/; its parts live until replay_free(). */
struct replay {
	struct mlk_reader *trace;
	struct dwunw *dw;
	struct trace_modules *images; /* the unwinder borrows their bytes */
	struct address_spaces *spaces;
	struct stacks *stacks; /* the distinct stacks, their counts filled in */
	struct live *live;     /* all blocks, and what each process amounts to */
	struct suspect_blocks suspect;
	/* Blocks of stacks here that no event allocated, beyond the totals: the caller's. */
	struct live_amount older;
	/* Blocks whose stack is known, and was guessed for a test: the caller's, too. */
	struct live_amount guessed, guessed_right;
	struct live_amount suspects; /* outstanding blocks that may have been freed */
	struct live_totals totals;   /* of the chosen process, or of all; of a sample, estimates */
	struct thread_names *processes; /* see processes.h */
	struct stack_stats *figures;
	struct thread_names *threads;
	struct origins origins;		  /* of the kernel's blocks */
	struct memory_samples memory;	  /* of all processes, whichever was chosen */
	struct trace_marks marks;	  /* all */
	struct block_filter choice;	  /* of the caller */
	struct chosen chosen;		  /* which blocks that means */
	struct live_watch watch;	  /* of the caller */
	struct address_history *holders;  /* of the caller, or NULL */
	struct thread_accounts *accounts; /* the same */
	struct overruns *overruns;	  /* of the chosen process, up to the chosen moment */
	struct mlk_condition condition;	  /* of the trace, over all passes */
	struct cache_trace chunks;	  /* what tells the trace from others */
	struct sampling_error error;	  /* of the totals of what is outstanding */
	/* Allocations of the chosen process, or of all, by how their stacks ended. */
	uint64_t status_counts[DWUNW_STATUS_NR];
	char *comm; /* the recorded process's name as ps shows it, or the best there is; never "" */
	const char **missing; /* paths */
	size_t nr_missing;
};

/* All zero is fine: no directories, all blocks, no watch, a thread for each CPU. */
struct replay_opts {
	const char *const *debug_dirs; /* where debug information is looked for, in this order */
	size_t nr_debug_dirs;
	uint64_t temporary_ns; /* see stack_stats_set_temporary() */
	bool mangled;	       /* names are to stay as the files have them */
	const char *symfs; /* where files are looked for as below another system's root, or NULL */
	struct block_filter choice; /* the counts of stacks are of these blocks; the totals are not,
			     but of its process */
	struct live_watch watch;    /* called for each change of the sums by chosen blocks */
	unsigned int
		nr_threads; /* that read at the same time, see worker_pool.h; 0: one for each CPU */
	/* Called with progress_arg and the offset in the file up to which it was read; or NULL. */
	void (*progress)(void *arg, uint64_t offset);
	void *progress_arg;
	struct address_history *holders; /* of all events; NULL: none, borrowed as the trace is */
	/* What the trace says of threads beside its events; NULL: that is not wanted.  Borrowed as
	 * the trace is. */
	struct thread_accounts *accounts;
	/* In place of the replay, called with batch_arg and the events of each chunk, whose stacks
	 * are unwound anew: *@ids by a stack is its id in leaks->dw.  Returns 0 or an
	 * error, which replay_collect() then returns.  NULL: replay. */
	int (*batch)(void *arg, const struct replay *leaks, const struct batch *batch,
		     const uint32_t *ids);
	void *batch_arg;
	struct stack_cache *cache; /* to be used, and made, if it can be; NULL: it must not */
	/* What the cache keeps of the results of a replay may be used in place of the second pass,
	 * for these options are as those of that replay: all blocks, no batch, holders, accounts or
	 * in_order, temporary_ns 0. */
	bool plain;
	struct growth *growth; /* then: the one that watches, to be filled in; NULL: none does */
};

/*
 * Read all of @trace, which is borrowed until replay_free(), as is what @opts points to for the
 * call.
 * *@out is NULL on failure.  Returns 0, -ENOMEM, the -errno of read(2), or MLK_E_CACHE: the cache
 * is not of the trace; all is to be done again after stack_cache_refuse().
 */
int replay_collect(struct replay **out, struct mlk_reader *trace, const struct replay_opts *opts);

/*
 * The steps of replay_collect(), for a trace that is being written: begin, with blocks of which
 * replay->chosen is yet to be set; take in a record of what was mapped where, of threads and of
 * losses; make use of what was taken in; take in an event, whose stack is @id in replay->dw if it
 * is an ALLOC.  Each returns 0 or -ENOMEM.
 */
int replay_new(struct replay **out, struct mlk_reader *trace, const struct replay_opts *opts);
int replay_note_layout(struct replay *leaks, const struct mlk_record *record);
int replay_use_layout(struct replay *leaks);
int replay_event(struct replay *leaks, const struct mlk_event *event, uint32_t id);

/*
 * Forget most processes that have ended, as live_forget_ended() does, and what else is known of
 * them.  @forgot, or NULL, is called with @arg for each stack that begins anew: its number may be
 * that of a stack of another process from now on.  Returns 0 or -ENOMEM.
 */
int replay_forget_ended(struct replay *leaks, size_t keep,
			void (*forgot)(void *arg, uint32_t stack), void *arg);

/* For replay.c, in replay_layout.c: the first pass, over what was mapped where, the threads, what
 * was lost and what was overrun.  Returns 0, -ENOMEM or the -errno of read(2). */
int replay_read_layout(struct replay *leaks);

/* Is what is counted as lost by @kind (enum mlk_loss) an interpreter's frames? */
static inline bool replay_is_frame_loss(int kind)
{
	return kind == MLK_LOST_FRAMES || kind == MLK_LOST_CALLERS || kind == MLK_LOST_CODE;
}

/* Is what is counted as lost by @kind (enum mlk_loss) an event?  Else it does not make the totals
 * wrong. */
static inline bool replay_is_event_loss(int kind)
{
	return kind != MLK_LOST_MODULE && kind != MLK_LOST_LOOK && kind != MLK_LOST_USER &&
	       kind != MLK_LOST_SUM && !replay_is_frame_loss(kind);
}

/* Events that were lost, of all kinds. */
uint64_t replay_lost(const struct replay *leaks);

/* If no allocation was recorded up to the moment that is examined: how many were only counted, in
 * all of the recording.  Else 0. */
uint64_t replay_only_counted(const struct replay *leaks);

/* How many allocations status_counts[] has in all. */
uint64_t replay_allocations(const struct replay *leaks);

/* Path of the @i-th module (from 0) that was mapped executable but has no usable image in the
 * trace, or NULL when there are no more. */
const char *replay_missing(const struct replay *leaks, size_t i);

/* Release @leaks; NULL is allowed. */
void replay_free(struct replay *leaks);

/* Make @all also what @pass says, the first that read these chunks, the reader's own aside.  A pass
 * sees only the damage in the chunks that it reads: that is added.  Of what each pass sees, the
 * worst is kept.  All zero is before the first. */
void condition_merge(struct mlk_condition *all, const struct mlk_condition *pass);

/* Of a sample that was recorded later than from the first allocation: about how many older blocks
 * were freed, whose frees are not in the trace.  All allocations less all frees are what really
 * came to be outstanding; what the sample says of that is more by those.  Else 0. */
uint64_t replay_older_in_sample(const struct replay *leaks, const struct mlk_meta *meta);

/* At least so many older blocks were freed whose frees, and so sizes, are not in the trace: where a
 * part of the blocks is recorded, by a sample or another choice. */
uint64_t replay_older_unsized(const struct replay *leaks, const struct mlk_meta *meta);

/* Is every block that lives known: was all recorded, from the first allocation on? */
bool replay_knows_all(const struct replay *leaks, const struct mlk_meta *meta);

/* Are the frees of older blocks in the trace?  Where a part of the blocks is recorded, frees of all
 * others are left out. */
bool replay_knows_older(const struct replay *leaks, const struct mlk_meta *meta);

#endif
