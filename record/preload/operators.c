/* operators.c - operators new and delete that an allocator has of its own
 *
 * Those of libstdc++ call malloc and free, and are left alone: a call goes on to them as if this
 * library were not there.  Those in the object that malloc is in do not, so they are recorded.
 * Which it is, is found out at the first call: libstdc++ may come with a plugin.
 */
#ifndef PRELOAD_STATIC

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "record/preload/preload.h"

/* In the order of operators.S. */
struct preload_operator preload_operators[] = {
	{.name = "_Znwm", .func = FUNC_NEW},
	{.name = "_ZnwmRKSt9nothrow_t", .func = FUNC_NEW},
	{.name = "_ZnwmSt11align_val_t", .func = FUNC_NEW},
	{.name = "_ZnwmSt11align_val_tRKSt9nothrow_t", .func = FUNC_NEW},
	{.name = "_Znam", .func = FUNC_NEW_ARRAY},
	{.name = "_ZnamRKSt9nothrow_t", .func = FUNC_NEW_ARRAY},
	{.name = "_ZnamSt11align_val_t", .func = FUNC_NEW_ARRAY},
	{.name = "_ZnamSt11align_val_tRKSt9nothrow_t", .func = FUNC_NEW_ARRAY},
	{.name = "_ZdlPv", .func = FUNC_DELETE},
	{.name = "_ZdlPvm", .func = FUNC_DELETE},
	{.name = "_ZdlPvRKSt9nothrow_t", .func = FUNC_DELETE},
	{.name = "_ZdlPvSt11align_val_t", .func = FUNC_DELETE},
	{.name = "_ZdlPvmSt11align_val_t", .func = FUNC_DELETE},
	{.name = "_ZdlPvSt11align_val_tRKSt9nothrow_t", .func = FUNC_DELETE},
	{.name = "_ZdaPv", .func = FUNC_DELETE},
	{.name = "_ZdaPvm", .func = FUNC_DELETE},
	{.name = "_ZdaPvRKSt9nothrow_t", .func = FUNC_DELETE},
	{.name = "_ZdaPvSt11align_val_t", .func = FUNC_DELETE},
	{.name = "_ZdaPvmSt11align_val_t", .func = FUNC_DELETE},
	{.name = "_ZdaPvSt11align_val_tRKSt9nothrow_t", .func = FUNC_DELETE},
};

/* Where each jumps to; operators.S begins it. */
extern void *preload_operator_targets[] __attribute__((visibility("hidden")));
/* Entries that record. */
extern void *const preload_operator_entries[] __attribute__((visibility("hidden")));

/* What nothing defines, for a library that was linked without what it needs. */
static void *give(size_t size, uint64_t align, uint64_t unused)
{
	(void)unused;
	/* a reference to std::nothrow is no alignment */
	return align && align <= 1 << 20 && !(align & (align - 1))
		       ? preload_real.aligned_alloc(align, size)
		       : preload_real.malloc(size);
}

static void *take(size_t block, uint64_t unused, uint64_t unused_either)
{
	(void)unused;
	(void)unused_either;
	preload_real.free((void *)block);
	return NULL;
}

/* The definition behind ours; of a plugin that was opened for itself alone, the one that it has. */
static void *look_up(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, name), *library;
	struct link_map *map = NULL;
	Dl_info info;

	if (!found && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
		found = dlsym(map, name);
	if (!found) {
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
		found = library ? dlsym(library, name) : NULL;
	}
	return found;
}

/* Find out what operator @number, called from @caller, is to be.  Returns where it goes on. */
void *preload_find_operator(unsigned int number, const void *caller)
{
	struct preload_operator *o = &preload_operators[number];
	int saved_errno = errno;
	void *found, *target;

	if (!preload_ready())
		return (void *)(uintptr_t)(o->func == FUNC_DELETE ? take : give);
	preload_hide(true);
	found = look_up(o->name, caller);
	preload_hide(false);
	if (!found)
		found = (void *)(uintptr_t)(o->func == FUNC_DELETE ? take : give);
	*(void **)&o->real = target = found;
	if (preload_in(&preload_state.allocator, (uint64_t)found) &&
	    preload_state.allocator.start != preload_state.libc.start)
		target = preload_operator_entries[number];
	__atomic_store_n(&preload_operator_targets[number], target, __ATOMIC_RELEASE);
	errno = saved_errno;
	return target;
}

#endif
