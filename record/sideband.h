/* sideband.h - the kernel's notices of new executable mappings, names of threads, and exec
 *
 * From a perf event that counts nothing (PERF_COUNT_SW_DUMMY), on each thread and CPU.
 */
#ifndef RECORD_SIDEBAND_H
#define RECORD_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"

struct sideband; /* opaque */

/* What the notices are handed to.  Only those of the target process come here. */
struct sideband_sink {
	void (*mapped)(void *ctx, uint64_t time_ns, const struct mlk_mapping *m);
	void (*named)(void *ctx, uint32_t tid, const char *name);
	void (*execed)(void *ctx, uint64_t time_ns);
	void (*lost)(void *ctx, uint64_t nr);
	void *ctx;
};

/* Begin to listen to all threads of @pid, and to those it starts later.
 * On success *@out is released with sideband_free(); on failure it is NULL.  Returns 0 or -errno.
 */
int sideband_open(struct sideband **out, pid_t pid);

/* Descriptors that become readable with a notice: the @i-th, or -1 when there are no more. */
int sideband_fd(const struct sideband *s, int i);

/* Hand all notices that are waiting to @sink. */
void sideband_read(struct sideband *s, const struct sideband_sink *sink);

void sideband_free(struct sideband *s);

#endif
