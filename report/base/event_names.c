/* event_names.c - see event_names.h */
#include "report/base/event_names.h"

#include <stddef.h>

const char *event_func_name(unsigned int func)
{
	static const char *const names[MLK_FUNC_NR] = {
		[MLK_FUNC_MALLOC] = "malloc",
		[MLK_FUNC_CALLOC] = "calloc",
		[MLK_FUNC_REALLOC] = "realloc",
		[MLK_FUNC_POSIX_MEMALIGN] = "posix_memalign",
		[MLK_FUNC_ALIGNED_ALLOC] = "aligned_alloc",
		[MLK_FUNC_MEMALIGN] = "memalign",
		[MLK_FUNC_VALLOC] = "valloc",
		[MLK_FUNC_PVALLOC] = "pvalloc",
		[MLK_FUNC_REALLOCARRAY] = "reallocarray",
		[MLK_FUNC_MMAP] = "mmap",
		[MLK_FUNC_MREMAP] = "mremap",
		[MLK_FUNC_NEW] = "new",
		[MLK_FUNC_NEW_ARRAY] = "new[]",
		[MLK_FUNC_KMALLOC] = "kmalloc",
		[MLK_FUNC_KMEM_CACHE_ALLOC] = "kmem_cache_alloc",
		[MLK_FUNC_ALLOC_PAGES] = "alloc_pages",
		[MLK_FUNC_ALLOC_PERCPU] = "alloc_percpu",
	};

	return func < MLK_FUNC_NR ? names[func] : NULL;
}

const char *event_kind_name(unsigned int kind)
{
	static const char *const names[MLK_KIND_NR] = {
		[MLK_ALLOC] = "ALLOC",	   [MLK_FREE] = "FREE", [MLK_RELEASE] = "RELEASE",
		[MLK_RESTORE] = "RESTORE", [MLK_EXEC] = "EXEC", [MLK_UNMAP] = "UNMAP",
		[MLK_FORK] = "FORK",	   [MLK_EXIT] = "EXIT", [MLK_PAGES] = "PAGES",
	};

	return kind < MLK_KIND_NR ? names[kind] : NULL;
}

const char *event_pages_name(unsigned int pages)
{
	static const char *const names[MLK_PAGES_NR] = {
		[MLK_PAGES_ACCESSIBLE] = "accessible",
		[MLK_PAGES_GIVEN_BACK] = "given-back",
		[MLK_PAGES_LAZILY] = "lazily-freed",
		[MLK_PAGES_RESIDENT] = "resident",
	};

	return pages < MLK_PAGES_NR ? names[pages] : NULL;
}

const char *event_loss_name(int kind)
{
	static const char *const names[MLK_LOSS_NR] = {
		[MLK_LOST_ALLOC] = "allocs",	 [MLK_LOST_FREE] = "frees",
		[MLK_LOST_RELEASE] = "releases", [MLK_LOST_RESTORE] = "restores",
		[MLK_LOST_RETURN] = "returns",	 [MLK_LOST_STATE] = "states",
		[MLK_LOST_POINTER] = "pointers", [MLK_LOST_EXEC] = "execs",
		[MLK_LOST_MAPS] = "maps",	 [MLK_LOST_MODULE] = "modules",
		[MLK_LOST_UNMAP] = "unmaps",	 [MLK_LOST_OVERRUN] = "overruns",
		[MLK_LOST_NOTICE] = "notices",	 [MLK_LOST_LOOK] = "looks",
		[MLK_LOST_USER] = "users",	 [MLK_LOST_SUM] = "sums",
		[MLK_LOST_FRAMES] = "frames",	 [MLK_LOST_CALLERS] = "callers",
		[MLK_LOST_CODE] = "functions",
	};

	return names[kind];
}

const char *event_skip_name(int kind)
{
	static const char *const names[MLK_SKIP_NR] = {
		[MLK_SKIPPED_SIZE] = "size",	   [MLK_SKIPPED_SAMPLE] = "sample",
		[MLK_SKIPPED_TRIGGER] = "trigger", [MLK_SKIPPED_DELAY] = "delay",
		[MLK_SKIPPED_FREE] = "free",	   [MLK_SKIPPED_UNKEPT] = "unkept",
		[MLK_SKIPPED_CHILD] = "child",	   [MLK_SKIPPED_SHORT] = "short",
		[MLK_SKIPPED_OWN] = "own",	   [MLK_SKIPPED_SLAB] = "slab",
		[MLK_SKIPPED_PAGES] = "pages",
	};

	return names[kind];
}

const char *stack_mode_name(unsigned int mode)
{
	static const char *const names[] = {
		[MLK_STACK_RAW] = "raw",
		[MLK_STACK_FILTERED] = "filtered",
		[MLK_STACK_REDACTED] = "redacted",
	};

	return mode <= MLK_STACK_REDACTED ? names[mode] : NULL;
}
