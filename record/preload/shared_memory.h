/* shared_memory.h - the memory that the recorder and the code in its target share */
#ifndef RECORD_SHARED_MEMORY_H
#define RECORD_SHARED_MEMORY_H

#include <stddef.h>

#include "record/preload/backend.h"

/*
 * A sealed memory that has no name, all zero, and cannot be made shorter under us.  *@memory_fd is
 * its descriptor, to be closed by the caller also on failure, -1 if there is none; *@bytes how much
 * was wanted, also on failure; *@out where it is mapped, to be unmapped, NULL on failure.  Returns
 * 0 or -errno, -EFBIG where no file may be so large.
 */
int shared_memory_make(const struct preload_opts *opts, int *memory_fd, size_t *bytes,
		       struct preload_header **out);

/* Log why there are no @bytes of memory to share, the failure @err, and what to do, in one
 * sentence. */
void shared_memory_explain(size_t bytes, int err);

/* The command will map all @bytes.  Say so if its address space, which is limited as ours is, has
 * clearly less room for that. */
void shared_memory_warn(size_t bytes);

#endif
