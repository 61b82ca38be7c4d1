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
		[MLK_E_MAGIC - MLK_E_LINK] = "it is a symbolic link, which is not followed",
		[MLK_E_MAGIC - MLK_E_NOWHERE] =
			"it is a symbolic link to what does not exist, and is not followed",
	};

	if (err <= MLK_E_MAGIC && err >= MLK_E_NOWHERE)
		return text[MLK_E_MAGIC - err];
	return strerror(err < 0 ? -err : err);
}

const char *mlk_loss_text(enum mlk_loss kind, uint64_t nr)
{
	static const char *const text[MLK_LOSS_NR][2] = {
		[MLK_LOST_ALLOC] = {"allocation", "allocations"},
		[MLK_LOST_FREE] = {"free", "frees"},
		[MLK_LOST_RELEASE] = {"free by realloc", "frees by realloc"},
		[MLK_LOST_RESTORE] = {"failed realloc", "failed reallocs"},
		[MLK_LOST_RETURN] = {"allocator call that was not seen to return",
				     "allocator calls that were not seen to return"},
		[MLK_LOST_STATE] = {"allocator call that could not be noted",
				    "allocator calls that could not be noted"},
		[MLK_LOST_POINTER] = {"posix_memalign result that could not be read",
				      "posix_memalign results that could not be read"},
		[MLK_LOST_EXEC] = {"program or process that was not recorded",
				   "programs or processes that were not recorded"},
		[MLK_LOST_MAPS] = {"notice of a mapping or thread",
				   "notices of mappings or threads"},
		[MLK_LOST_MODULE] = {"module whose file could not be read",
				     "modules whose file could not be read"},
		[MLK_LOST_UNMAP] = {"unmap", "unmaps"},
		[MLK_LOST_OVERRUN] = {"overrun", "overruns"},
		[MLK_LOST_NOTICE] = {"notice that a process runs another program",
				     "notices that a process runs another program"},
		[MLK_LOST_LOOK] = {"process whose last blocks were not looked at for overruns",
				   "processes whose last blocks were not looked at for overruns"},
		[MLK_LOST_USER] = {"stack of user space", "stacks of user space"},
		[MLK_LOST_SUM] = {"allocation or free that was not added up for --trigger",
				  "allocations and frees that were not added up for --trigger"},
		[MLK_LOST_FRAMES] =
			{"allocation without an interpreter's frames, as the buffer was full",
			 "allocations without an interpreter's frames, as the buffer was full"},
		[MLK_LOST_CALLERS] = {"allocation without all callers that an interpreter had",
				      "allocations without all callers that an interpreter had"},
		[MLK_LOST_CODE] = {"frame of an interpreter without a name",
				   "frames of an interpreter without a name"},
	};

	return (unsigned int)kind < MLK_LOSS_NR ? text[kind][nr != 1]
						: "of a kind that this mleak does not know";
}

const char *mlk_skip_text(enum mlk_skip kind, uint64_t nr)
{
	static const char *const text[MLK_SKIP_NR][2] = {
		[MLK_SKIPPED_SIZE] = {"allocation of another size than asked for",
				      "allocations of another size than asked for"},
		[MLK_SKIPPED_SAMPLE] = {"allocation that is not among the sample",
					"allocations that are not among the sample"},
		[MLK_SKIPPED_TRIGGER] = {"allocation of a thread that was only counted",
					 "allocations of threads that were only counted"},
		[MLK_SKIPPED_DELAY] = {"allocation before the delay was over",
				       "allocations before the delay was over"},
		[MLK_SKIPPED_FREE] = {"free of a block that was not recorded",
				      "frees of blocks that were not recorded"},
		[MLK_SKIPPED_UNKEPT] =
			{"recorded block for which there was no room in the table of addresses",
			 "recorded blocks for which there was no room in the table of addresses"},
		[MLK_SKIPPED_CHILD] = {"child process", "child processes"},
		[MLK_SKIPPED_SHORT] =
			{"allocation that was freed before the recorder looked at it",
			 "allocations that were freed before the recorder looked at them"},
		[MLK_SKIPPED_OWN] = {"allocation of the recorder itself",
				     "allocations of the recorder itself"},
		[MLK_SKIPPED_SLAB] = {"page of slabs, whose objects are recorded",
				      "pages of slabs, whose objects are recorded"},
		[MLK_SKIPPED_PAGES] = {"range that was given back, and perhaps used again",
				       "ranges that were given back, and perhaps used again"},
	};

	return (unsigned int)kind < MLK_SKIP_NR ? text[kind][nr != 1]
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
