/* replay.h - replay a trace: unwind every allocation, and find what is still outstanding at the end
 */
#ifndef REPORT_LEAKS_H
#define REPORT_LEAKS_H

#include "format/reader.h"
#include "report/decode/batch.h"
#include "report/live/block_filter.h"
#include "report/live/address_history.h"
#include "report/trace/trace_modules.h"
#include "report/live/live.h"
#include "report/replay/overruns.h"
#include "report/stats/processes.h"
#include "report/live/sampling.h"
#include "report/stats/stacks.h"

struct leaks; /* opaque: all that was learned of one trace */

/* All zero is fine: no directories, all blocks, nobody watches, a thread for each CPU. */
struct leaks_opts {
	const char *const *debug_dirs; /* where debug information is looked for, in this order */
	size_t nr_debug_dirs;
	uint64_t temporary_ns; /* see figures_set_temporary() */
	bool mangled;	       /* names are to stay as the files have them */
	const char *symfs; /* where files are looked for as below another system's root, or NULL */
	struct choice choice;	 /* the counts of stacks are of these blocks; the totals are not,
				  but of its process */
	struct live_watch watch; /* told of each change of the sums by chosen blocks */
	unsigned int nr_threads; /* that read at the same time, see crew.h; 0: one for each CPU */
	/* Called with progress_arg and the offset in the file up to which it was read; or NULL. */
	void (*progress)(void *arg, uint64_t offset);
	void *progress_arg;
	struct holders *holders; /* told of all events; NULL: none, borrowed as the trace is */
	/* In place of the replay, called with batch_arg and the events of each chunk, whose stacks
	 * are unwound anew: *@ids by a stack is its id in leaks_unwinder().  Returns 0 or an error,
	 * which leaks_collect() then returns.  NULL: replay. */
	int (*batch)(void *arg, const struct leaks *leaks, const struct batch *batch,
		     const uint32_t *ids);
	void *batch_arg;
};

/*
 * Read all of @trace, which is borrowed until leaks_free(), as is what @opts points to for the
 * call.
 * *@out is NULL on failure.  Returns 0, -ENOMEM or the -errno of read(2).
 */
int leaks_collect(struct leaks **out, struct mlk_reader *trace, const struct leaks_opts *opts);

/* What the accessors below return is valid until leaks_free(). */

/* The totals of all blocks, of the chosen process if there is one; of a sampled trace, estimates.
 */
const struct live_totals *leaks_totals(const struct leaks *leaks);

/* How far those of what is outstanding may be from the truth. */
const struct sampling_error *leaks_error(const struct leaks *leaks);

/* Of the outstanding blocks: those that may have been freed, see suspect.h. */
struct live_amount leaks_suspect(const struct leaks *leaks);

/* In which time frees were lost, see suspect_times(). */
bool leaks_suspect_times(const struct leaks *leaks, uint64_t *from_ns, uint64_t *to_ns);

/* Were chunks lost that are not of a time after the chosen moment? */
bool leaks_chunks_matter(const struct leaks *leaks);

/* By enum mlk_loss: what was lost, but for what was lost after the chosen moment. */
const uint64_t *leaks_losses_that_matter(const struct leaks *leaks);

/* What was outstanding of the chosen blocks when most bytes of them were. */
struct live_amount leaks_peak(const struct leaks *leaks);

/* All blocks, and which of them are chosen. */
const struct chosen *leaks_chosen(const struct leaks *leaks);

/* The distinct stacks, their counts filled in, and what names their frames. */
const struct stacks *leaks_stacks(const struct leaks *leaks);
struct dwunw *leaks_unwinder(const struct leaks *leaks);
const struct images *leaks_images(const struct leaks *leaks);

/* What was found written beyond blocks of the chosen process, up to the chosen moment. */
const struct overruns *leaks_overruns(const struct leaks *leaks);

/* Allocations, of the chosen process if there is one, whose stack ended with @status. */
uint64_t leaks_status_count(const struct leaks *leaks, enum dwunw_status status);

/* The processes: what each amounts to, and their names. */
const struct live *leaks_live(const struct leaks *leaks);
const struct processes *leaks_processes(const struct leaks *leaks);

/* The name of the recorded process as ps shows it, or the best there is; never "". */
const char *leaks_comm(const struct leaks *leaks);

/* The state of the trace over all passes. */
const struct mlk_condition *leaks_condition(const struct leaks *leaks);

/* Snapshots of the maps that were ignored, as there were too many mappings in all. */
size_t leaks_ignored_snapshots(const struct leaks *leaks);

/* Path of the @i-th module (from 0) that was mapped executable but has no usable image in the
 * trace, or NULL when there are no more. */
const char *leaks_missing(const struct leaks *leaks, size_t i);

/* Release @leaks; NULL is allowed. */
void leaks_free(struct leaks *leaks);

#endif
