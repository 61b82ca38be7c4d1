/* leaks_state.h - what replay.c and replay_layout.c share: what is being learned of a trace */
#ifndef REPORT_LEAKS_STATE_H
#define REPORT_LEAKS_STATE_H

#include "report/live/suspect_blocks.h"
#include "report/replay/replay.h"
#include "report/stats/stack_stats.h"
#include "report/trace/address_spaces.h"

struct replay {
	struct mlk_reader *trace;
	struct dwunw *dw;
	struct trace_modules *images; /* the unwinder borrows their bytes */
	struct address_spaces *spaces;
	struct stacks *stacks;
	struct live *live;
	struct suspect_blocks suspect;
	struct live_amount suspects;
	struct live_totals totals; /* of the chosen process, or of all */
	struct processes *processes;
	struct stack_stats *figures;
	struct thread_names *threads;
	struct block_filter choice; /* of the caller */
	struct chosen chosen;
	struct live_watch watch;	 /* of the caller */
	struct address_history *holders; /* of the caller, or NULL */
	struct overruns *overruns;
	struct mlk_condition condition;
	struct sampling_error error;
	uint64_t status_counts[DWUNW_STATUS_NR];
	char *comm;
	const char **missing; /* paths */
	size_t nr_missing;
};

/* The first pass: what was mapped where, the threads, what was lost and what was overrun.  Returns
 * 0, -ENOMEM or the -errno of read(2). */
int leaks_read_layout(struct replay *leaks);

#endif
