/* halves.c - the C halves of the stubs: calls of the functions that allocate and free
 *
 * What each records, and when, is as the preloaded library has it (libpreload/wrap/wrap.c): a free
 * before it happens, an allocation after.
 */
#include "record/injected/halves.h"
#include "record/libpreload/event/sample.h"

void injected_record(enum event_func func, const void *block, size_t size, const struct caller *c)
{
	const struct preload_thread *self = &preload_self;
	uint64_t sp = (uint64_t)c->stack;

	if (UNLIKELY(sp - self->stack_lo >= self->stack_hi - self->stack_lo))
		injected_extend_stack(sp);
	preload_alloc(func, block, size, c);
}

/* The call returns @block, of @size bytes. */
VISIT_INLINE void *allocated(const struct visit *v, void *block, size_t size,
			     const struct caller *c)
{
	if (LIKELY(v->counts && block != NULL) && !sample_leaves_out(size, c->pc))
		injected_record(v->site->func, block, size, c);
	visit_end(v);
	return block;
}

void *half_malloc(size_t size, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	return allocated(&v, VISIT_ORIGINAL(&v, void *(size_t), size), size, c);
}

void *half_calloc(size_t nr, size_t size, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	return allocated(&v, VISIT_ORIGINAL(&v, void *(size_t, size_t), nr, size), nr * size, c);
}

void *half_aligned_alloc(size_t align, size_t size, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	return allocated(&v, VISIT_ORIGINAL(&v, void *(size_t, size_t), align, size), size, c);
}

int half_posix_memalign(void **out, size_t align, size_t size, const struct caller *c)
{
	struct visit v;
	int err;

	visit_begin(&v, c);
	err = VISIT_ORIGINAL(&v, int(void **, size_t, size_t), out, align, size);
	allocated(&v, err ? NULL : *out, size, c);
	return err;
}

/* @old is about to be another block. */
static void release(const struct visit *v, void *old, const struct caller *c)
{
	if (old && LIKELY(v->counts))
		preload_small(EVENT_RELEASE, old, 0, c->pc);
}

/* It is @block, of @size bytes, or if that is NULL, still there. */
static void *reallocated(const struct visit *v, void *old, void *block, size_t size,
			 const struct caller *c)
{
	if (!block && old && size && v->counts)
		preload_small(EVENT_RESTORE, old, 0, c->pc);
	return allocated(v, block, size, c);
}

void *half_realloc(void *old, size_t size, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	release(&v, old, c);
	return reallocated(&v, old, VISIT_ORIGINAL(&v, void *(void *, size_t), old, size), size, c);
}

void *half_reallocarray(void *old, size_t nr, size_t size, const struct caller *c)
{
	struct visit v;
	void *block;
	size_t bytes;

	visit_begin(&v, c);
	/* One that is too large changes nothing. */
	if (__builtin_mul_overflow(nr, size, &bytes))
		v.counts = false;
	release(&v, old, c);
	block = VISIT_ORIGINAL(&v, void *(void *, size_t, size_t), old, nr, size);
	return reallocated(&v, old, block, bytes, c);
}

/* In rax it returns something, or nothing. */
typedef uint64_t free_fn(void *, uint64_t, uint64_t);

/* Some have a size and an alignment behind the block. */
void half_free(void *block, uint64_t second, uint64_t third, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	if (LIKELY(v.counts && block != NULL) && !sample_leaves_out_free(block, c->pc))
		preload_small(EVENT_FREE, block, 0, c->pc);
	VISIT_ORIGINAL(&v, free_fn, block, second, third); /* of no result */
	visit_end(&v);
}

typedef void *new_fn(size_t, uint64_t, uint64_t);

/* An alignment, and what says that it throws nothing, come behind the size. */
void *half_new_nothrow(size_t size, uint64_t second, uint64_t third, const struct caller *c)
{
	struct visit v;

	visit_begin(&v, c);
	return allocated(&v, VISIT_ORIGINAL(&v, new_fn, size, second, third), size, c);
}

/* The same of an operator that may throw, and NULL besides: then the stub goes on to the operator
 * itself, by a jump, for an exception must not pass our frame.  Called from here is its form that
 * throws nothing, to which @second is an alignment, or as the third is. */
static void *throwing(size_t size, uint64_t second, uint64_t third, const struct caller *c)
{
	struct preload_header *h = preload_shared();
	void *block = NULL;
	struct visit v;
	uint32_t before;

	visit_begin(&v, c);
	before = visit_call(&v);
	if (LIKELY(v.site->nothrow))
		block = ((new_fn *)v.site->nothrow)(size, second, third);
	visit_return(&v, before);
	/* Should the operator find memory after all, it is not seen. */
	if (!block && v.counts && h)
		thread_ring_lost(h, NULL, PRELOAD_LOST_ALLOC);
	return allocated(&v, block, size, c);
}

static const uint8_t no_throw;

void *half_new(size_t size, const struct caller *c)
{
	return throwing(size, (uint64_t)&no_throw, 0, c);
}

void *half_new_aligned(size_t size, uint64_t align, const struct caller *c)
{
	return throwing(size, align, (uint64_t)&no_throw, c);
}
