/* alloc_functions.c - see alloc_functions.h */
#include "record/allocator/alloc_functions.h"

#include "bpf/event.h"

const struct alloc_function wanted[WANTED_NR] = {
	{"malloc", FUNC_MALLOC, SITE_ALLOC, 1, WANTED_C},
	{"free", FUNC_FREE, SITE_FREE, 1, WANTED_C},
	{"calloc", FUNC_CALLOC, SITE_ALLOC, 2, WANTED_C},
	{"realloc", FUNC_REALLOC, SITE_ALLOC, 2, WANTED_C},
	{"reallocarray", FUNC_REALLOCARRAY, SITE_ALLOC, 3, WANTED_C},
	{"posix_memalign", FUNC_POSIX_MEMALIGN, SITE_ALLOC, 3, WANTED_C},
	{"aligned_alloc", FUNC_ALIGNED_ALLOC, SITE_ALLOC, 2, WANTED_C},
	{"memalign", FUNC_MEMALIGN, SITE_ALLOC, 2, WANTED_C},
	{"valloc", FUNC_VALLOC, SITE_ALLOC, 1, WANTED_C},
	{"pvalloc", FUNC_PVALLOC, SITE_ALLOC, 1, WANTED_C},
	{"cfree", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"free_sized", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"free_aligned_sized", FUNC_FREE, SITE_FREE, 1, WANTED_OWN},
	{"mmap", FUNC_MMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"mmap64", FUNC_MMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"mremap", FUNC_MREMAP, SITE_ALLOC, 4, WANTED_MAP},
	{"munmap", FUNC_MUNMAP, SITE_FREE, 2, WANTED_MAP},
	{"_Znwm", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmRKSt9nothrow_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmSt11align_val_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", FUNC_NEW, SITE_ALLOC, 1, WANTED_OWN},
	{"_Znam", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamRKSt9nothrow_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamSt11align_val_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", FUNC_NEW_ARRAY, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPv", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvm", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvmSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPv", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvm", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvmSt11align_val_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", FUNC_DELETE, SITE_ALLOC, 1, WANTED_OWN},
};

bool alloc_functions_is_new(size_t i)
{
	return wanted[i].func == FUNC_NEW || wanted[i].func == FUNC_NEW_ARRAY;
}

bool alloc_functions_is_operator(size_t i)
{
	return alloc_functions_is_new(i) || wanted[i].func == FUNC_DELETE;
}
