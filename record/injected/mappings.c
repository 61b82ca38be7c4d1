/* mappings.c - the C halves of the stubs: calls of the functions that map and unmap
 *
 * What an allocator or the C library maps is an arena of its own, and not recorded.
 */
#include "record/injected/halves.h"

#include <sys/mman.h>

/* As visit_begin(). */
static void begin(struct visit *v, const struct caller *c)
{
	visit_begin(v, c);
	if (v->counts && visit_is_library(c->pc))
		v->counts = false;
}

/* Have the recorder know of new code.  A file's will run at once, and be unwound. */
static void tell_code(int prot, bool is_file)
{
	if (UNLIKELY(prot & PROT_EXEC))
		preload_maps_changed(is_file);
}

/* Is the mapping the stack of a thread?  In a static program the C library is not told by where it
 * lies. */
static bool is_thread_stack(int flags)
{
	return injected.code.is_static && flags & MAP_STACK;
}

/* @block was mapped, by the program itself if that @counts. */
static void mapped(bool counts, void *block, size_t size, int prot, int flags,
		   const struct caller *c)
{
	enum event_func func = prot & EVENT_PROT_ANY ? FUNC_MMAP : FUNC_MMAP | FUNC_RESERVED;
	bool is_file = !(flags & MAP_ANONYMOUS);

	if (counts && flags & MAP_FIXED)
		preload_small(EVENT_UNMAP, block, size, c->pc);
	/* Where the C library is the loader, too, files are mapped from there. */
	if (counts || is_file)
		tell_code(prot, is_file);
	/* The pages of a file are the file's. */
	if (counts && is_file)
		preload_note_file(block);
	else if (counts && !is_thread_stack(flags))
		injected_record(func, block, size, c);
}

typedef void *mmap_fn(void *, size_t, int, int, int, int64_t);

void *half_mmap(void *addr, size_t size, int prot, int flags, int fd, int64_t offset,
		const struct caller *c)
{
	struct visit v;
	void *block;

	begin(&v, c);
	block = VISIT_ORIGINAL(&v, mmap_fn, addr, size, prot, flags, fd, offset);
	if (v.thread && block != MAP_FAILED)
		mapped(v.counts, block, size, prot, flags, c);
	visit_end(&v);
	return block;
}

/* What the mapping at @old was is about to change, by mremap. */
static void release(void *old, size_t old_size, int flags, const struct caller *c)
{
	if (old_size && !(flags & MREMAP_DONTUNMAP))
		preload_small(EVENT_UNMAP, old, old_size, c->pc);
}

/* It is @block, of @size bytes, now. */
static void record_moved(void *old, void *block, size_t size, int flags, const struct caller *c)
{
	if (block == MAP_FAILED) {
		preload_small(EVENT_RESTORE, old, 0, c->pc);
		return;
	}
	if (flags & MREMAP_FIXED)
		preload_small(EVENT_UNMAP, block, size, c->pc);
	injected_record(FUNC_MREMAP, block, size, c);
}

typedef void *mremap_fn(void *, size_t, size_t, int, void *);

void *half_mremap(void *old, size_t old_size, size_t size, int flags, void *to,
		  const struct caller *c)
{
	bool is_file;
	struct visit v;
	void *block;

	begin(&v, c);
	is_file = v.counts && preload_forget_file(old);
	if (v.counts && !is_file)
		release(old, old_size, flags, c);
	block = VISIT_ORIGINAL(&v, mremap_fn, old, old_size, size, flags, to);
	if (is_file)
		preload_note_file(block == MAP_FAILED ? old : block);
	else if (v.counts)
		record_moved(old, block, size, flags, c);
	visit_end(&v);
	return block;
}

int half_munmap(void *addr, size_t size, const struct caller *c)
{
	struct visit v;
	int result;

	begin(&v, c);
	/* What the kernel would refuse unmaps nothing. */
	if (v.counts && !((uint64_t)addr & 4095) && size) {
		preload_forget_file(addr);
		preload_small(EVENT_UNMAP, addr, size, c->pc);
	}
	result = VISIT_ORIGINAL(&v, int(void *, size_t), addr, size);
	visit_end(&v);
	return result;
}

/* The call is over, and the kernel has done to the pages what @type says; 0: nothing. */
static int changed(const struct visit *v, uint32_t type, void *addr, size_t size,
		   const struct caller *c)
{
	if (type && size && v->counts)
		preload_small((enum event_type)type, addr, size, c->pc);
	visit_end(v);
	return 0;
}

int half_mprotect(void *addr, size_t size, int prot, const struct caller *c)
{
	struct visit v;
	int result;

	begin(&v, c);
	result = VISIT_ORIGINAL(&v, int(void *, size_t, int), addr, size, prot);
	if (result) {
		visit_end(&v);
		return result;
	}
	if (v.counts)
		tell_code(prot, false);
	return changed(&v, event_of_prot((uint32_t)prot), addr, size, c);
}

int half_madvise(void *addr, size_t size, int advice, const struct caller *c)
{
	struct visit v;
	int result;

	begin(&v, c);
	result = VISIT_ORIGINAL(&v, int(void *, size_t, int), addr, size, advice);
	if (result) {
		visit_end(&v);
		return result;
	}
	return changed(&v, event_of_advice((uint32_t)advice), addr, size, c);
}
