/* verdict_run.h - the part of a report that asks which blocks are lost */
#ifndef REPORT_VERDICT_RUN_H
#define REPORT_VERDICT_RUN_H

#include "report/report_run.h"

/* Judge the blocks by the pointers in the trace, if it has any and that is asked for, or the format
 * tells of it.  Returns an exit status; where it is not EXIT_OK, it has been said why. */
int verdict_run_find(struct report_run *job);

/* Have @choice choose only blocks with the verdicts that are asked for. */
void verdict_run_choose(const struct report_run *job, struct block_filter *choice);

#endif
