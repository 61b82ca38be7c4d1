/* event_names.c - see event_names.h */
#include "report/event_names.h"

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
	};

	return func < MLK_FUNC_NR ? names[func] : NULL;
}
