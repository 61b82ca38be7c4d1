/* dry_run.h - what mleak record --dry-run shows */
#ifndef RECORD_DRY_RUN_H
#define RECORD_DRY_RUN_H

#include "record/options.h"
#include "record/session/session.h"

/* Print where probes would be in the processes of @s, or which entries would be changed.  Returns
 * 0, or EXIT_RECORD_FAILED after one sentence was logged. */
int record_dry_run(const struct session *s, const struct record_opts *o);

#endif
