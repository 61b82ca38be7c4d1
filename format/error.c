/* error.c - what went wrong, and what was lost, in words */
#include <string.h>

#include "format/trace.h"

const char *mlk_strerror(int err)
{
	static const char *const text[] = {
		[MLK_E_MAGIC - MLK_E_MAGIC] = "not a mleak trace",
		[MLK_E_MAGIC - MLK_E_VERSION] =
			"of a later version of the format than this mleak knows",
		[MLK_E_MAGIC - MLK_E_HEADER] = "the file header is damaged",
		[MLK_E_MAGIC - MLK_E_EMPTY] = "the trace was cut before its first whole chunk",
		[MLK_E_MAGIC - MLK_E_CORRUPT] = "damaged",
		[MLK_E_MAGIC - MLK_E_NO_FILE] = "it exists and is not a regular file",
		[MLK_E_MAGIC - MLK_E_USER] = "a file of another user has that name",
		[MLK_E_MAGIC - MLK_E_BUSY] = "another process is writing a trace to it",
		[MLK_E_MAGIC - MLK_E_OTHER] = "it is another file now",
		[MLK_E_MAGIC - MLK_E_DELETED] = "it was deleted while it was written",
		[MLK_E_MAGIC - MLK_E_MOVED] = "it was moved or replaced while it was written",
		[MLK_E_MAGIC - MLK_E_CHANGED] = "something else changed it while it was written",
		[MLK_E_MAGIC - MLK_E_CACHE] = "the cache beside the trace is not of it",
	};

	if (err <= MLK_E_MAGIC && err >= MLK_E_CACHE)
		return text[MLK_E_MAGIC - err];
	return strerror(err < 0 ? -err : err);
}

const char *mlk_loss_text(enum mlk_loss kind)
{
	static const char *const text[MLK_LOSS_NR] = {
		[MLK_LOST_ALLOC] = "allocations",
		[MLK_LOST_FREE] = "frees",
		[MLK_LOST_RELEASE] = "frees by realloc",
		[MLK_LOST_RESTORE] = "failed reallocs",
		[MLK_LOST_RETURN] = "allocator calls that were not seen to return",
		[MLK_LOST_STATE] = "allocator calls that could not be noted",
		[MLK_LOST_POINTER] = "posix_memalign results that could not be read",
		[MLK_LOST_EXEC] = "programs or processes that were not recorded",
		[MLK_LOST_MAPS] = "notices of mappings or threads",
		[MLK_LOST_MODULE] = "modules whose file could not be read",
		[MLK_LOST_UNMAP] = "unmaps",
		[MLK_LOST_OVERRUN] = "overruns",
		[MLK_LOST_NOTICE] = "notices that a process runs another program",
		[MLK_LOST_LOOK] = "processes whose last blocks were not looked at for overruns",
		[MLK_LOST_USER] = "stacks of user space",
		[MLK_LOST_SUM] = "allocations and frees that were not added up for --trigger",
		[MLK_LOST_FRAMES] =
			"allocations without an interpreter's frames, as the buffer was full",
		[MLK_LOST_CALLERS] = "allocations without all callers that an interpreter had",
		[MLK_LOST_CODE] = "frames of an interpreter without a name",
	};

	return (unsigned int)kind < MLK_LOSS_NR ? text[kind]
						: "of a kind that this mleak does not know";
}

const char *mlk_skip_text(enum mlk_skip kind)
{
	static const char *const text[MLK_SKIP_NR] = {
		[MLK_SKIPPED_SIZE] = "allocations of another size than asked for",
		[MLK_SKIPPED_SAMPLE] = "allocations that are not among the sample",
		[MLK_SKIPPED_TRIGGER] = "allocations of threads that were only counted",
		[MLK_SKIPPED_DELAY] = "allocations before the delay was over",
		[MLK_SKIPPED_FREE] = "frees of blocks that were not recorded",
		[MLK_SKIPPED_UNKEPT] = "recorded blocks for which there was no room in the table "
				       "of addresses",
		[MLK_SKIPPED_CHILD] = "child processes",
		[MLK_SKIPPED_SHORT] =
			"allocations that were freed before the recorder looked at them",
		[MLK_SKIPPED_OWN] = "allocations of the recorder itself",
		[MLK_SKIPPED_SLAB] = "pages of slabs, whose objects are recorded",
		[MLK_SKIPPED_PAGES] = "ranges that were given back, and perhaps used again",
	};

	return (unsigned int)kind < MLK_SKIP_NR ? text[kind]
						: "of a kind that this mleak does not know";
}

const char *mlk_memory_text(enum mlk_memory_value value)
{
	static const char *const text[MLK_MEMORY_NR] = {
		[MLK_MEMORY_MAPPED] = "mapped",
		[MLK_MEMORY_RSS] = "RSS",
		[MLK_MEMORY_PSS] = "PSS",
		[MLK_MEMORY_ANON] = "anonymous",
		[MLK_MEMORY_FILE] = "files",
		[MLK_MEMORY_SHMEM] = "shared memory",
		[MLK_MEMORY_SWAP] = "swap",
		[MLK_MEMORY_PAGE_TABLES] = "page tables",
		[MLK_MEMORY_PEAK] = "peak RSS",
		[MLK_MEMORY_LAZY_FREE] = "lazily freed",
		[MLK_MEMORY_HUGE] = "huge pages",
		[MLK_MEMORY_TOTAL] = "total",
		[MLK_MEMORY_FREE] = "free",
		[MLK_MEMORY_AVAILABLE] = "available",
		[MLK_MEMORY_CACHED] = "cached files",
		[MLK_MEMORY_SLAB_RECLAIM] = "reclaimable slabs",
		[MLK_MEMORY_SLAB_KEPT] = "unreclaimable slabs",
		[MLK_MEMORY_KERNEL_STACKS] = "kernel stacks",
		[MLK_MEMORY_VMALLOC] = "vmalloc",
		[MLK_MEMORY_PERCPU] = "percpu",
	};

	return (unsigned int)value < MLK_MEMORY_NR ? text[value]
						   : "of a kind that this mleak does not know";
}
