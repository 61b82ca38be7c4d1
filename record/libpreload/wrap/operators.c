/* operators.c - operators new and delete that an allocator has of its own
 *
 * Those of libstdc++ call malloc and free, and are left alone: a call goes on to them as if this
 * library were not there.  Those in the object that malloc is in do not, so they are recorded.
 * Without such ones the names are removed from the table by which the loader finds them: a plugin
 * that brings its own libstdc++ is to have that, which is not behind this library.
 */
#ifndef PRELOAD_STATIC

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "record/libpreload/preload.h"

/* In the order of operators.S. */
struct preload_operator preload_operators[] = {
	{.name = "_Znwm", .func = FUNC_NEW},
	{.name = "_ZnwmRKSt9nothrow_t", .func = FUNC_NEW},
	{.name = "_ZnwmSt11align_val_t", .func = FUNC_NEW, .aligned = true},
	{.name = "_ZnwmSt11align_val_tRKSt9nothrow_t", .func = FUNC_NEW, .aligned = true},
	{.name = "_Znam", .func = FUNC_NEW_ARRAY},
	{.name = "_ZnamRKSt9nothrow_t", .func = FUNC_NEW_ARRAY},
	{.name = "_ZnamSt11align_val_t", .func = FUNC_NEW_ARRAY, .aligned = true},
	{.name = "_ZnamSt11align_val_tRKSt9nothrow_t", .func = FUNC_NEW_ARRAY, .aligned = true},
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

enum { PLAIN_DELETE = 8, PLAIN_DELETE_ARRAY = 14 };

/* Where each jumps to; operators.S begins it. */
extern void *preload_operator_targets[] __attribute__((visibility("hidden")));
/* Entries that record. */
extern void *const preload_operator_entries[] __attribute__((visibility("hidden")));

static bool is_own(const void *function)
{
	return preload_state.allocator.start != preload_state.libc.start &&
	       preload_in(&preload_state.allocator, (uint64_t)function);
}

/* What the dynamic section says under @tag; NULL: nothing. */
static void *dynamic(int64_t tag)
{
	uint64_t base = preload_state.own.start, at = 0;

	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			at = d->d_un.d_ptr;
	/* Not every loader puts addresses there. */
	return (void *)(at && at < base ? base + at : at);
}

/* From now on the loader does not find our operators.  What it bound to them stays so. */
static void hide_names(void)
{
	const uint32_t *hash = dynamic(DT_HASH);
	const char *names = dynamic(DT_STRTAB);
	ElfW(Sym) *symbols = dynamic(DT_SYMTAB);
	uint64_t start = (uint64_t)symbols & ~4095ull, end;

	if (!hash || !names || !symbols)
		return;
	end = ((uint64_t)(symbols + hash[1]) + 4095) & ~4095ull;
	if (preload_real.mprotect((void *)start, end - start, PROT_READ | PROT_WRITE))
		return;
	for (uint32_t i = 0; i < hash[1]; i++)
		if (!strncmp(names + symbols[i].st_name, "_Z", 2))
			symbols[i].st_value = 0;
	preload_real.mprotect((void *)start, end - start, PROT_READ);
}

void preload_find_operators(void)
{
	if (!is_own(preload_real.malloc) || !is_own(dlsym(RTLD_NEXT, "_Znwm")))
		hide_names();
}

/* Find out what operator @number is to be.  Returns where a call of it goes on. */
void *preload_find_operator(unsigned int number)
{
	struct preload_operator *o = &preload_operators[number];
	int saved_errno = errno;
	void *found;

	preload_ready();
	found = dlsym(RTLD_NEXT, o->name);
	/* What needs one was linked with a library that has it; or it cannot have been started. */
	if (!found)
		__builtin_trap();
	*(void **)&o->real = found;
	if (is_own(found))
		found = preload_operator_entries[number];
	__atomic_store_n(&preload_operator_targets[number], found, __ATOMIC_RELEASE);
	errno = saved_errno;
	return found;
}

unsigned int preload_plain_delete(unsigned int number)
{
	unsigned int plain = number < PLAIN_DELETE_ARRAY ? PLAIN_DELETE : PLAIN_DELETE_ARRAY;

	if (!preload_operators[plain].real)
		preload_find_operator(plain);
	return plain;
}

#endif
