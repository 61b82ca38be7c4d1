/* debuginfod.h - debug information over the network, on request
 *
 * This is the only part of the report that uses the network, by elfutils' libdebuginfod, which is
 * looked for when it is wanted: mleak does without it.
 */
#ifndef REPORT_DEBUGINFOD_H
#define REPORT_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

struct debuginfod; /* opaque */

/* Prepare to ask the servers in $DEBUGINFOD_URLS.  What hinders it is said on stderr.  *@out is
 * NULL on failure.  Returns 0, -EINVAL (no servers are named), -ENOENT (no such library) or
 * -ENOMEM. */
int debuginfod_new(struct debuginfod **out);

/* A dwunw_debug_fetch, to be called with the struct debuginfod.  Shows its progress on stderr if
 * that is a terminal. */
char *debuginfod_fetch(void *debuginfod, const uint8_t *build_id, size_t len);

/* Release @debuginfod; NULL is allowed. */
void debuginfod_free(struct debuginfod *debuginfod);

#endif
