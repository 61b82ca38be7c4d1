/* resolve_real.c - the functions behind the wrappers, and where code of interest lies
 *
 * In a program that is linked with libmleak-wrap.a the linker knows them; else they are the next
 * definitions behind this library's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "record/libpreload/preload.h"

struct real preload_real;

/* Set the range of the module that holds an address. */
struct search {
	uint64_t addr;
	struct preload_range *out;
};

static int see_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct search *s = arg;
	struct preload_range r = {UINT64_MAX, 0};

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		r.start = start < r.start ? start : r.start;
		start += info->dlpi_phdr[i].p_memsz;
		r.end = start > r.end ? start : r.end;
	}
	if (r.start > s->addr || r.end <= s->addr)
		return 0;
	*s->out = r;
	return 1;
}

#ifdef PRELOAD_STATIC
static bool ask_loader(uint64_t addr, struct search *s)
{
	(void)addr;
	(void)s;
	return false;
}
#else
/* As dl_iterate_phdr(), of the module with @addr.  A sanitizer has a function of that name, which
 * ends the program before the sanitizer has begun. */
static bool ask_loader(uint64_t addr, struct search *s)
{
	const ElfW(Ehdr) * head;
	struct dl_phdr_info info = {0};
	Dl_info found;

	if (!dladdr((const void *)(uintptr_t)addr, &found))
		return false;
	head = found.dli_fbase;
	if (head->e_ident[EI_MAG0] != ELFMAG0 || head->e_ident[EI_MAG1] != ELFMAG1 ||
	    head->e_ident[EI_MAG2] != ELFMAG2 || head->e_ident[EI_MAG3] != ELFMAG3 ||
	    head->e_phoff != sizeof(*head))
		return false;
	info.dlpi_phdr = (const ElfW(Phdr) *)(head + 1);
	info.dlpi_phnum = head->e_phnum;
	for (int i = 0; i < info.dlpi_phnum; i++)
		if (info.dlpi_phdr[i].p_type == PT_LOAD) {
			info.dlpi_addr = (uint64_t)(uintptr_t)head - info.dlpi_phdr[i].p_vaddr;
			break;
		}
	return see_module(&info, sizeof(info), s);
}
#endif

static void find_range(uint64_t addr, struct preload_range *out)
{
	struct search s = {.addr = addr, .out = out};

	if (!ask_loader(addr, &s))
		dl_iterate_phdr(see_module, &s);
}

#ifdef PRELOAD_STATIC
/* Not every allocator has the last three; another's would not go with its malloc. */
#define FIND(name)                                              \
	({                                                      \
		extern char __real_##name[];                    \
		*(void **)&preload_real.name = (__real_##name); \
	})
#define FIND_ANY(name)                                             \
	({                                                         \
		extern char __real_##name[] __attribute__((weak)); \
		*(void **)&preload_real.name = (__real_##name);    \
	})
#else
#define FIND(name)     (*(void **)&preload_real.name = dlsym(RTLD_NEXT, #name))
#define FIND_ANY(name) FIND(name)
#endif

#ifdef PRELOAD_STATIC
static int see_library(struct dl_phdr_info *info, size_t size, void *found)
{
	const char *slash = strrchr(info->dlpi_name, '/');

	(void)size;
	*(bool *)found = slash && !strcmp(slash + 1, PRELOAD_LIBRARY);
	return *(bool *)found;
}

bool preload_is_second(void)
{
	bool found = false;

	dl_iterate_phdr(see_library, &found);
	return found;
}
#else
bool preload_is_second(void)
{
	return false;
}
#endif

/* A program's own malloc comes before that of a library, also of one that is preloaded.  What is
 * found in a program may also be just where it jumps to ours: then it has no such symbol defined.
 */
static bool is_passed_by(void)
{
#ifdef PRELOAD_STATIC
	return false;
#else
	const struct preload_range *own = &preload_state.own;
	void *first = dlsym(RTLD_DEFAULT, "malloc");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!first || (uint64_t)(uintptr_t)first - own->start < own->end - own->start)
		return false;
	return dladdr1(first, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       info.dli_saddr == first && symbol->st_shndx != SHN_UNDEF;
#endif
}

void preload_find(void)
{
	int saved_errno = errno;

	FIND(malloc);
	FIND(calloc);
	FIND(realloc);
	FIND(free);
	FIND(posix_memalign);
	FIND(aligned_alloc);
	FIND_ANY(malloc_usable_size);
	FIND_ANY(memalign);
	FIND_ANY(valloc);
	FIND_ANY(pvalloc);
	FIND_ANY(reallocarray); /* unused, but ld 2.40 crashes on one that is wrapped and not named
				 */
	FIND(mmap);
	FIND(mremap);
	FIND(munmap);
	FIND(mprotect);
	FIND(madvise);
	FIND(vfork);
	FIND(execve);
	FIND(execvpe);
	FIND(fexecve);
	FIND_ANY(execveat);
	FIND(system);
	FIND(popen);
	FIND_ANY(syscall);
	FIND(posix_spawn);
	FIND(posix_spawnp);
	FIND(pthread_getattr_np);
#ifndef PRELOAD_STATIC
	FIND(sigaction);
	FIND(signal);
	FIND(sysv_signal);
	FIND(sigset);
#endif
	if (!PRELOAD_IS_STATIC)
		find_range(getauxval(AT_BASE), &preload_state.loader);
	find_range((uint64_t)(uintptr_t)preload_real.malloc, &preload_state.allocator);
	find_range((uint64_t)(uintptr_t)clock_gettime, &preload_state.libc);
	find_range((uint64_t)(uintptr_t)preload_find, &preload_state.own);
	preload_state.passed_by = preload_state.own_malloc = is_passed_by();
#ifndef PRELOAD_STATIC
	preload_state.calls_unseen = preload_calls_unseen();
	preload_find_operators();
#endif
	errno = saved_errno;
}
