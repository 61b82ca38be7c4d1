/* memory_samples.h - what the recorded processes had in memory, as the MEMORY chunks tell it
 *
 * To draw a process's RSS:
 *
 *	const struct memory_process *p = memory_samples_find(&leaks->memory, tgid);
 *
 *	for (size_t i = 0; p && i < p->nr; i++)
 *		if (p->all[i].known >> MLK_MEMORY_RSS & 1)
 *			point(p->all[i].time_ns - meta->start_ns, p->all[i].value[MLK_MEMORY_RSS]);
 *
 * Between two samples the value is that of the earlier one.  A sample where nothing is known is a
 * gap: with error ESRCH the process had ended, with another one it could not be read, with 0 it has
 * only values that this version does not know.  PSS is taken
 * less often than the others and is missing in most samples of large processes.  Of several
 * processes memory_samples_at() gives the sum.
 */
#ifndef REPORT_MEMORY_SAMPLES_H
#define REPORT_MEMORY_SAMPLES_H

#include <stdbool.h>

#include "format/trace.h"
#include "report/base/hash_index.h"

#define MEMORY_SAMPLES_MAX   1024 /* kept of a process; of more, every second, fourth... */
#define MEMORY_PROCESSES_MAX 4096 /* of which samples are kept */

/* The samples of one process, in the order of their times, and the first and the last always among
 * them; so are those that say that it had ended, unless it did hundreds of times. */
struct memory_process {
	uint32_t tgid, zero; /* 0: the machine's, of a recording of the kernel; for intern_pair() */
	struct mlk_memory *all;
	size_t nr, room;
	uint64_t taken;	 /* samples in the trace, failed ones, too */
	uint64_t failed; /* of these could not be taken; not because the process had ended */
	uint32_t error;	 /* why, the first time: an errno */
	uint64_t stride; /* one of so many is kept */
};

/* All zero: none are known. */
struct memory_samples {
	INTERN_OF(struct memory_process);
	uint64_t left_out; /* samples of processes beyond MEMORY_PROCESSES_MAX */
	uint64_t first_ns; /* of the earliest, also of a process that is forgotten; 0: none */
};

/* Note @sample, which is copied.  One that is earlier than its process's last one counts as of that
 * time.  Returns 0 or -ENOMEM. */
int memory_samples_note(struct memory_samples *samples, const struct mlk_memory *sample);

/* The process @tgid; NULL: there are no samples of it.  Valid until memory_samples_note() or
 * memory_samples_release(). */
const struct memory_process *memory_samples_find(const struct memory_samples *samples,
						 uint32_t tgid);

/* The last sample of @process at or before @time_ns that tells @value; NULL: there is none, or the
 * process had ended by then. */
const struct mlk_memory *memory_sample_at(const struct memory_process *process,
					  enum mlk_memory_value value, uint64_t time_ns);

/* The sum of @value at @time_ns over all processes that had begun and had not ended, in *@bytes;
 * the machine is not among them.  What several processes share is in each one's RSS, and so more
 * than once in the sum; PSS has no such error.  False: it is known of no process. */
bool memory_samples_at(const struct memory_samples *samples, enum mlk_memory_value value,
		       uint64_t time_ns, uint64_t *bytes);

/* Forget the samples of the processes of which @is_gone() says so, with @arg. */
void memory_samples_forget(struct memory_samples *samples,
			   bool (*is_gone)(void *arg, uint32_t tgid), void *arg);

/* Release what @samples holds. */
void memory_samples_release(struct memory_samples *samples);

#endif
