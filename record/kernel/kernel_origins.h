/* kernel_origins.h - where the kernel's blocks come from: process, cgroup, cache, allocation flags
 */
#ifndef RECORD_KERNEL_ORIGINS_H
#define RECORD_KERNEL_ORIGINS_H

#include "format/writer.h"
#include "record/kernel/kmem_probes.h"

struct kernel_origins; /* opaque */

/* What distinguishes one from another; no padding, all bytes count. */
struct kernel_origin_key {
	uint64_t cache;	 /* address; of kmalloc the size of the block */
	uint64_t cgroup; /* id */
	uint32_t tgid;	 /* 0: an interrupt */
	uint32_t gfp;
	uint32_t kind; /* enum kmem_kind */
	uint32_t order;
};

/* Origins are written to @w with their names, which @probes reads; both are borrowed until
 * kernel_origins_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int kernel_origins_new(struct kernel_origins **out, const struct kmem_probes *probes,
		       struct mlk_writer *w);

/* From now on they are written to @w, to which nothing was: each that comes is new there. */
void kernel_origins_begin_trace(struct kernel_origins *o, struct mlk_writer *w);

/* The number of @key in *@number, which is written with @comm, a thread's name, if it is new.
 * Returns 0, -ENOMEM or the writer's error. */
int kernel_origins_number(struct kernel_origins *o, const struct kernel_origin_key *key,
			  const char *comm, uint32_t *number);

/* The name of the cache at @cache, or that of kmalloc's for blocks of @size bytes; "" for others.
 * Valid until the next call. */
const char *kernel_origins_cache(struct kernel_origins *o, uint32_t kind, uint64_t cache,
				 uint64_t size);

/* Release @o; NULL is allowed. */
void kernel_origins_free(struct kernel_origins *o);

#endif
