/* pids.h - the processes that the command line names */
#ifndef RECORD_PIDS_H
#define RECORD_PIDS_H

#include <stddef.h>
#include <sys/types.h>

#include "mleak.h"

#define RECORD_MAX_PIDS 64

/*
 * Append those of @text, the value of @option, to the @nr of @pids, which has room for
 * RECORD_MAX_PIDS: numbers and names with commas between.  A name is that of the program, its file
 * or argv[0] without a folder, as ps(1) shows it, and must be one process's alone.  This process,
 * zombies and threads of the kernel have none.
 *
 * Returns 0, or -EINVAL after one sentence was logged.
 */
int pids_read(const struct option_info *option, const char *text, pid_t *pids, size_t *nr);

#endif
