/* leaks_state.h - what leaks.c and leaks_layout.c share: what is being learned of a trace */
#ifndef REPORT_LEAKS_STATE_H
#define REPORT_LEAKS_STATE_H

#include "report/stats/stack_stats.h"
#include "report/replay/replay.h"
#include "report/trace/address_spaces.h"
#include "report/live/suspect_blocks.h"

struct leaks {
	struct mlk_reader *trace;
	struct dwunw *dw;
	struct images *images; /* the unwinder borrows their bytes */
	struct spaces *spaces;
	struct stacks *stacks;
	struct live *live;
	struct suspect suspect;
	struct live_amount suspects;
	struct live_totals totals; /* of the chosen process, or of all */
	struct processes *processes;
	struct figures *figures;
	struct thread_names *threads;
	struct choice choice; /* of the caller */
	struct chosen chosen;
	struct live_watch watch; /* of the caller */
	struct holders *holders; /* of the caller, or NULL */
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
int leaks_read_layout(struct leaks *leaks);

#endif
