/* replay.h - replay a trace: unwind every allocation, and find what is still outstanding at the end
 */
#ifndef REPORT_REPLAY_H
#define REPORT_REPLAY_H

#include "format/reader.h"
#include "report/decode/batch.h"
#include "report/live/address_history.h"
#include "report/live/block_filter.h"
#include "report/live/live.h"
#include "report/live/sampling.h"
#include "report/replay/overruns.h"
#include "report/stats/processes.h"
#include "report/stats/stacks.h"
#include "report/trace/trace_modules.h"

struct replay; /* opaque: all that was learned of one trace */

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
	/* In place of the replay, called with batch_arg and the events of each chunk, whose stacks
	 * are unwound anew: *@ids by a stack is its id in replay_unwinder().  Returns 0 or an
	 * error, which replay_collect() then returns.  NULL: replay. */
	int (*batch)(void *arg, const struct replay *leaks, const struct batch *batch,
		     const uint32_t *ids);
	void *batch_arg;
};

/*
 * Read all of @trace, which is borrowed until replay_free(), as is what @opts points to for the
 * call.
 * *@out is NULL on failure.  Returns 0, -ENOMEM or the -errno of read(2).
 */
int replay_collect(struct replay **out, struct mlk_reader *trace, const struct replay_opts *opts);

/* What the accessors below return is valid until replay_free(). */

/* The totals of all blocks, of the chosen process if there is one; of a sampled trace, estimates.
 */
const struct live_totals *replay_totals(const struct replay *leaks);

/* How far those of what is outstanding may be from the truth. */
const struct sampling_error *replay_error(const struct replay *leaks);

/* Of the outstanding blocks: those that may have been freed, see suspect_blocks.h. */
struct live_amount replay_suspect(const struct replay *leaks);

/* In which time frees were lost, see suspect_blocks_times(). */
bool replay_suspect_times(const struct replay *leaks, uint64_t *from_ns, uint64_t *to_ns);

/* Were chunks lost that are not of a time after the chosen moment? */
bool replay_chunks_matter(const struct replay *leaks);

/* By enum mlk_loss: what was lost, except for what was lost after the chosen moment. */
const uint64_t *replay_losses_that_matter(const struct replay *leaks);

/* What was outstanding of the chosen blocks when most bytes of them were. */
struct live_amount replay_peak(const struct replay *leaks);

/* All blocks, and which of them are chosen. */
const struct chosen *replay_chosen(const struct replay *leaks);

/* The distinct stacks, their counts filled in, and what names their frames. */
const struct stacks *replay_stacks(const struct replay *leaks);
struct dwunw *replay_unwinder(const struct replay *leaks);
const struct trace_modules *replay_modules(const struct replay *leaks);

/* What was found written beyond blocks of the chosen process, up to the chosen moment. */
const struct overruns *replay_overruns(const struct replay *leaks);

/* Allocations, of the chosen process if there is one, whose stack ended with @status. */
uint64_t replay_status_count(const struct replay *leaks, enum dwunw_status status);

/* The processes: what each amounts to, and their names. */
const struct live *replay_live(const struct replay *leaks);
const struct processes *replay_processes(const struct replay *leaks);

/* The name of the recorded process as ps shows it, or the best there is; never "". */
const char *replay_comm(const struct replay *leaks);

/* The state of the trace over all passes. */
const struct mlk_condition *replay_condition(const struct replay *leaks);

/* Snapshots of the maps that were ignored, as there were too many mappings in all. */
size_t replay_ignored_snapshots(const struct replay *leaks);

/* Path of the @i-th module (from 0) that was mapped executable but has no usable image in the
 * trace, or NULL when there are no more. */
const char *replay_missing(const struct replay *leaks, size_t i);

/* Release @leaks; NULL is allowed. */
void replay_free(struct replay *leaks);

#endif
