/* kernel_record.h - mleak record --kernel: what the kernel allocates and does not free */
#ifndef RECORD_KERNEL_RECORD_H
#define RECORD_KERNEL_RECORD_H

#include "record/kernel/kmem_probes.h"
#include "record/output.h"
#include "record/switch.h"

/* A recording of the kernel as the command line asks for it; strings are borrowed. */
struct kernel_opts {
	struct kmem_probes_opts probes;
	struct output_opts output;
	const char *cgroup;   /* the folder of the only cgroup; NULL: all */
	const char *cache;    /* name of the only slab cache; NULL: all */
	uint64_t older_ns;    /* only blocks that lived so long when they were looked at */
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t max_size;    /* of the trace, bytes; 0: no limit */
	struct switch_opts several;
	int zstd_level;
};

/* Record until a signal, the time or the size says so.  Returns the exit status; on failure one
 * sentence was logged. */
int kernel_record(const struct kernel_opts *opts);

#endif
