/* moments.h - moments that options name by marks of the trace */
#ifndef REPORT_MOMENTS_H
#define REPORT_MOMENTS_H

#include "report/report_run.h"

/* Give the moments of @choice that have the names of marks their times, in the trace of @job, which
 * is open; not that of the other side of a difference.  Returns EXIT_OK or the exit status to end
 * with; then it has been said why. */
int moments_find(struct block_filter *choice, const struct report_run *job);

/* Is @first_ns no later than @second_ns?  Returns as moments_find(). */
int moments_check(uint64_t first_ns, uint64_t second_ns);

#endif
