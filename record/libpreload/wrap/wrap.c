/* wrap.c - the C halves of the wrappers
 *
 * A free is recorded before the real one, an allocation after it: so an address is never allocated
 * again before its free is known.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "record/libpreload/golang.h"
#include "record/libpreload/guard/guard.h"

/* Calls of the allocator under way in this thread.  What it calls itself meanwhile, by the names
 * that lead here, is a part of them; not so in the C library, where those names are only called by
 * others of its functions. */
static __thread uint32_t depth __attribute__((tls_model("initial-exec")));

#define REAL(call)                                 \
	({                                         \
		uint32_t before_ = depth;          \
		depth = before_ + 1;               \
		__typeof__(call) result_ = (call); \
		depth = before_;                   \
		result_;                           \
	})

static bool is_nested(uint64_t pc)
{
	return UNLIKELY(depth) && preload_state.allocator.start != preload_state.libc.start &&
	       /* where it goes on to another by a jump, we seem to have called that */
	       (preload_in(&preload_state.allocator, pc) || preload_in(&preload_state.own, pc));
}

/* The functions behind a wrapper.  What the allocator gets for itself has no guard bytes: it may
 * give that back by a function which is not wrapped. */
static const struct real *behind(const struct caller *c)
{
	return is_nested(c->pc) && preload_state.guards ? &guard_under : &preload_real;
}

/* Does the allocator map this for itself?  In a static program it is not told by where it lies. */
static bool is_arena(uint64_t pc)
{
	return PRELOAD_IS_STATIC ? depth != 0 : preload_in_allocator(pc) || golang_maps(pc);
}

static void *keep(enum event_func func, void *block, size_t size, const struct caller *c)
{
	if (LIKELY(block != NULL) && !is_nested(c->pc)) {
		if (UNLIKELY(preload_state.passed_by))
			preload_not_passed_by();
		preload_alloc(func, block, size, c);
	}
	return block;
}

void *wrap_malloc(size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(16, size);
	return keep(FUNC_MALLOC, REAL(behind(c)->malloc(size)), size, c);
}

void *wrap_calloc(size_t nr, size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return size && nr > SIZE_MAX / size ? NULL : arena_alloc(16, nr * size);
	return keep(FUNC_CALLOC, REAL(behind(c)->calloc(nr, size)), nr * size, c);
}

/* @old was allocated while the real functions were looked up: it stays. */
static void *leave_arena(void *old, size_t size, const struct caller *c)
{
	void *block = wrap_malloc(size, c);
	size_t had = arena_size(old);

	if (block)
		memcpy(block, old, had < size ? had : size);
	return block;
}

static void *reallocate(enum event_func func, void *old, size_t size, const struct caller *c)
{
	void *block;

	if (UNLIKELY(arena_holds(old)))
		return leave_arena(old, size, c);
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(16, size);
	if (is_nested(c->pc))
		return old ? preload_real.realloc(old, size) : behind(c)->malloc(size);
	if (old) {
		guard_look(old, OVERRUN_AT_REALLOC);
		preload_small(EVENT_RELEASE, old, 0, c->pc);
	}
	block = REAL(preload_real.realloc(old, size));
	if (block)
		preload_alloc(func, block, size, c);
	else if (old && size)
		preload_small(EVENT_RESTORE, old, 0, c->pc);
	return block;
}

void *wrap_realloc(void *old, size_t size, const struct caller *c)
{
	return reallocate(FUNC_REALLOC, old, size, c);
}

/* By realloc, which the C library's own calls too, by a name that would lead here. */
void *wrap_reallocarray(void *old, size_t nr, size_t size, const struct caller *c)
{
	if (size && nr > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return reallocate(FUNC_REALLOCARRAY, old, nr * size, c);
}

int wrap_posix_memalign(void **out, size_t align, size_t size, const struct caller *c)
{
	int err;

	if (UNLIKELY(!preload_ready())) {
		*out = arena_alloc(align, size);
		return *out ? 0 : ENOMEM;
	}
	err = REAL(behind(c)->posix_memalign(out, align, size));
	if (!err)
		keep(FUNC_POSIX_MEMALIGN, *out, size, c);
	return err;
}

void *wrap_aligned_alloc(size_t align, size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(align, size);
	return keep(FUNC_ALIGNED_ALLOC, REAL(behind(c)->aligned_alloc(align, size)), size, c);
}

/* By memalign, or where the allocator has no such function, by the one that all have. */
static void *aligned(const struct real *real, size_t align, size_t size)
{
	return real->memalign ? real->memalign(align, size) : real->aligned_alloc(align, size);
}

void *wrap_memalign(size_t align, size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(align, size);
	return keep(FUNC_MEMALIGN, REAL(aligned(behind(c), align, size)), size, c);
}

void *wrap_valloc(size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(4096, size);
	if (!preload_real.valloc)
		return keep(FUNC_VALLOC, REAL(behind(c)->aligned_alloc(4096, size)), size, c);
	return keep(FUNC_VALLOC, REAL(behind(c)->valloc(size)), size, c);
}

void *wrap_pvalloc(size_t size, const struct caller *c)
{
	if (UNLIKELY(!preload_ready()))
		return arena_alloc(4096, size);
	if (!preload_real.pvalloc)
		return keep(FUNC_PVALLOC,
			    REAL(behind(c)->aligned_alloc(4096, (size + 4095) & ~(size_t)4095)),
			    size, c);
	return keep(FUNC_PVALLOC, REAL(behind(c)->pvalloc(size)), size, c);
}

static void release(void *block, uint64_t pc)
{
	uint32_t before = depth;

	if (UNLIKELY(!block || arena_holds(block) || !preload_ready()))
		return;
	if (!is_nested(pc)) {
		guard_look(block, OVERRUN_AT_FREE);
		preload_small(EVENT_FREE, block, 0, pc);
	}
	depth = before + 1;
	preload_real.free(block);
	depth = before;
}

EXPORT void free(void *block)
{
	/* As the last thing it does, that is by a jump: as in stubs.S. */
	if (PRELOAD_IS_STATIC && UNLIKELY(preload_mode == PRELOAD_UNRECORDED) &&
	    !arena_holds(block)) {
		preload_real.free(block);
		return;
	}
	release(block, (uint64_t)__builtin_return_address(0));
}

#ifndef PRELOAD_STATIC
EXPORT void cfree(void *block)
{
	release(block, (uint64_t)__builtin_return_address(0));
}
#endif

#ifndef PRELOAD_STATIC
/* The operator itself has its guard bytes; what it calls has none. */
static void *call_new(const struct preload_operator *o, size_t size, uint64_t second,
		      uint64_t third, bool nested)
{
	if (UNLIKELY(preload_state.guards) && !nested)
		return guard_new(o, size, second, third);
	return o->real(size, second, third);
}

/* An operator new of the allocator's own.  It may leave by an exception, and then the depth is not
 * set back; so a call from outside begins anew. */
void *wrap_new(size_t size, uint64_t second, uint64_t third, unsigned int number,
	       const struct caller *c)
{
	uint32_t before = preload_in(&preload_state.allocator, c->pc) ? depth : 0;
	bool nested = is_nested(c->pc);
	void *block;

	depth = before + 1;
	block = call_new(&preload_operators[number], size, second, third, nested);
	depth = before;
	return keep(preload_operators[number].func, block, size, c);
}

/* The same for operator delete. */
void wrap_delete(void *block, uint64_t second, uint64_t third, unsigned int number)
{
	uint64_t pc = (uint64_t)__builtin_return_address(0);
	uint32_t before = depth;

	if (block && !is_nested(pc)) {
		guard_look(block, OVERRUN_AT_FREE);
		preload_small(EVENT_FREE, block, 0, pc);
	}
	depth = before + 1;
	if (UNLIKELY(preload_state.guards) && guard_undress(&block))
		number = preload_plain_delete(number); /* the size is not the allocator's */
	preload_operators[number].real((size_t)block, second, third);
	depth = before;
}
#endif

/* Report new code.  Of a file's at once, because it will run and be unwound; of code made at run
 * time later. */
static void tell_code(int prot, int flags)
{
	if (UNLIKELY(prot & PROT_EXEC))
		preload_maps_changed(!(flags & MAP_ANONYMOUS));
}

/* Arguments of mmap(2), which are more than fit into registers with a caller. */
void *wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, int64_t offset,
		const struct caller *c)
{
	void *block;

	if (UNLIKELY(!preload_ready())) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	block = preload_real.mmap(addr, size, prot, flags, fd, offset);
	/* What an allocator maps is an arena of its own. */
	if (block == MAP_FAILED || is_arena(c->pc))
		return block;
	if (flags & MAP_FIXED)
		preload_small(EVENT_UNMAP, block, size, c->pc);
	tell_code(prot, flags);
	/* The pages of a file are the file's. */
	if (flags & MAP_ANONYMOUS)
		preload_alloc(prot & EVENT_PROT_ANY ? FUNC_MMAP : FUNC_MMAP | FUNC_RESERVED, block,
			      size, c);
	else
		preload_note_file(block);
	return block;
}

/* The real one; a file stays one. */
static void *remap_file(void *old, size_t old_size, size_t size, int flags, void *to)
{
	void *block = preload_real.mremap(old, old_size, size, flags, to);

	preload_note_file(block == MAP_FAILED ? old : block);
	return block;
}

void *wrap_mremap(void *old, size_t old_size, size_t size, int flags, void *to,
		  const struct caller *c)
{
	void *block;

	if (UNLIKELY(!preload_ready())) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (is_arena(c->pc))
		return preload_real.mremap(old, old_size, size, flags, to);
	if (preload_forget_file(old))
		return remap_file(old, old_size, size, flags, to);
	if (old_size && !(flags & MREMAP_DONTUNMAP))
		preload_small(EVENT_UNMAP, old, old_size, c->pc);
	block = preload_real.mremap(old, old_size, size, flags, to);
	if (block == MAP_FAILED) {
		preload_small(EVENT_RESTORE, old, 0, c->pc);
		return block;
	}
	if (flags & MREMAP_FIXED)
		preload_small(EVENT_UNMAP, block, size, c->pc);
	preload_alloc(FUNC_MREMAP, block, size, c);
	return block;
}

EXPORT int munmap(void *addr, size_t size)
{
	uint64_t pc = (uint64_t)__builtin_return_address(0);

	if (UNLIKELY(!preload_ready())) {
		errno = EINVAL;
		return -1;
	}
	/* What the kernel would refuse unmaps nothing. */
	if (!((uint64_t)addr & 4095) && size && !is_arena(pc)) {
		preload_forget_file(addr);
		preload_small(EVENT_UNMAP, addr, size, pc);
	}
	return preload_real.munmap(addr, size);
}

/* The kernel has done to pages what @type says, because of a call at @pc. */
static void tell_pages(uint32_t type, void *addr, size_t size, uint64_t pc)
{
	if (type && size && !is_arena(pc))
		preload_small((enum event_type)type, addr, size, pc);
}

EXPORT int madvise(void *addr, size_t size, int advice)
{
	int result;

	if (UNLIKELY(!preload_ready())) {
		errno = EAGAIN;
		return -1;
	}
	result = preload_real.madvise(addr, size, advice);
	if (!result)
		tell_pages(event_of_advice((uint32_t)advice), addr, size,
			   (uint64_t)__builtin_return_address(0));
	return result;
}

EXPORT int mprotect(void *addr, size_t size, int prot)
{
	int result;

	if (UNLIKELY(!preload_ready())) {
		errno = ENOMEM;
		return -1;
	}
	result = preload_real.mprotect(addr, size, prot);
	if (!result) {
		tell_code(prot, MAP_ANONYMOUS);
		tell_pages(event_of_prot((uint32_t)prot), addr, size,
			   (uint64_t)__builtin_return_address(0));
	}
	return result;
}
