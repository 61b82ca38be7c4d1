/* guard.c - the functions that allocate blocks with our bytes around them
 *
 * Which blocks are ours is known by a mark at their address: blocks allocated before, or by others,
 * have none and are left alone.  A block that is aligned to more than 16 bytes has a second mark,
 * 16 bytes before, because it does not begin 32 bytes before.
 *
 * Nothing here takes a lock, and a child of fork() goes on with what it has.
 */
#include <errno.h>

#include "record/libpreload/guard/guard_block.h"

#define PAGE	    4096u
#define PATIENCE    (1u << 25)	      /* some seconds */
#define LEAST_FRONT (2 * GUARD_FRONT) /* of a block with a second mark, which lies in it too */

struct real guard_under;
uint64_t guard_secret;

/* Bytes to ask for, of a block of @size behind @front.  0: too many. */
static size_t whole(size_t front, size_t size)
{
	return size > SIZE_MAX / 4 || front > SIZE_MAX / 4
		       ? 0
		       : front + round_up(size + GUARD_BEHIND, 16);
}

/* Make the allocator's block @base ours.  Returns the program's, or NULL: it cannot be marked. */
static uint8_t *dress(uint8_t *base, size_t front, size_t size)
{
	uint8_t *block = base + front;
	uint64_t canary = canary_of(block);
	struct head *h = head_of(block);

	if ((uint64_t)block & 15 || !marks_cover(block - 16) || !marks_cover(block))
		return NULL;
	h->size = size;
	h->front = (uint32_t)front;
	h->check = check_of(block, h);
	write_canary(canary, block - GUARD_CANARY, block);
	write_canary(canary, block + size, end_of(block, size));
	marks_set(block);
	if (front != GUARD_FRONT)
		marks_set(block - 16);
	return block;
}

/* The same of a new block; one that cannot be ours is the program's as it is. */
static void *dress_new(void *base, size_t front, size_t size)
{
	uint8_t *block = base ? dress(base, front, size) : NULL;

	return block ? block : base;
}

/* Take @block out of our hands: no other thread does from now on.  *@front is 0 where it is not
 * known any more.  False: it is not one of ours. */
static bool claim(uint8_t *block, size_t *front)
{
	bool aligned;

	if (!marks_has(block))
		return false;
	aligned = marks_clear(block - 16);
	if (!marks_clear(block))
		return false; /* another thread frees it too */
	/* Not forever: in a child of fork, the thread that walked does not exist. */
	for (uint32_t i = 0; i < PATIENCE && UNLIKELY(guard_is_looked_at(block)); i++)
		__builtin_ia32_pause();
	*front = !aligned ? GUARD_FRONT : is_whole(block) ? head_of(block)->front : 0;
	return true;
}

static void unclaim(uint8_t *block, size_t front)
{
	marks_set(block);
	if (front != GUARD_FRONT)
		marks_set(block - 16);
}

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

static void *guard_malloc(size_t size)
{
	size_t bytes = whole(GUARD_FRONT, size);

	return bytes ? dress_new(guard_under.malloc(bytes), GUARD_FRONT, size) : no_memory();
}

static void *guard_calloc(size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &size) || !(bytes = whole(GUARD_FRONT, size)))
		return no_memory();
	return dress_new(guard_under.calloc(1, bytes), GUARD_FRONT, size);
}

bool guard_undress(void **block)
{
	size_t front;

	if (!claim(*block, &front))
		return false;
	/* Where the allocator's block begins was overwritten: it stays. */
	*block = front ? (uint8_t *)*block - front : NULL;
	return true;
}

static void guard_free(void *block)
{
	guard_undress(&block);
	guard_under.free(block);
}

static void *guard_realloc(void *old, size_t size)
{
	size_t front, bytes;
	uint8_t *base, *block;

	if (!old)
		return guard_malloc(size);
	if (!claim(old, &front))
		return guard_under.realloc(old, size);
	if (!size && front)
		return guard_under.realloc((uint8_t *)old - front, 0);
	bytes = front ? whole(front, size) : 0;
	base = bytes ? guard_under.realloc((uint8_t *)old - front, bytes) : NULL;
	if (!base) {
		unclaim(old, front);
		return no_memory();
	}
	block = dress(base, front, size);
	return block ? block : memmove(base, base + front, size);
}

/* Aligned blocks begin at a multiple of @align behind the allocator's.  0: that is up to the
 * allocator alone. */
static size_t aligned_front(size_t align)
{
	/* a head holds 32 bits of it */
	if (align < sizeof(void *) || align & (align - 1) || align > UINT32_MAX)
		return 0;
	return align <= 16 ? GUARD_FRONT : align < LEAST_FRONT ? LEAST_FRONT : align;
}

static int guard_posix_memalign(void **out, size_t align, size_t size)
{
	size_t front = aligned_front(align), bytes = whole(front, size);
	void *base = NULL;
	int err;

	if (!front)
		return guard_under.posix_memalign(out, align, size);
	err = bytes ? guard_under.posix_memalign(&base, align, bytes) : ENOMEM;
	if (!err)
		*out = dress_new(base, front, size);
	return err;
}

static void *guard_aligned(void *(*real)(size_t, size_t), size_t align, size_t size)
{
	size_t front = aligned_front(align), bytes = whole(front, size);

	if (!front)
		return real(align, size);
	if (!bytes)
		return no_memory();
	/* Some take multiples of the alignment alone. */
	return dress_new(real(align, round_up(bytes, align)), front, size);
}

static void *guard_aligned_alloc(size_t align, size_t size)
{
	return guard_aligned(guard_under.aligned_alloc, align, size);
}

static void *guard_memalign(size_t align, size_t size)
{
	return guard_aligned(guard_under.memalign, align, size);
}

static void *guard_valloc(size_t size)
{
	return guard_memalign(PAGE, size);
}

static void *guard_pvalloc(size_t size)
{
	/* all of its pages are the program's */
	return size > SIZE_MAX / 4 ? no_memory() : guard_memalign(PAGE, round_up(size, PAGE));
}

#ifndef PRELOAD_STATIC
void *guard_new(const struct preload_operator *o, size_t size, uint64_t second, uint64_t third)
{
	size_t front = o->aligned ? aligned_front(second) : GUARD_FRONT;
	size_t bytes = whole(front, size);

	/* Of too large a size it throws, or not. */
	if (!front || !bytes)
		return o->real(size, second, third);
	if (o->aligned)
		bytes = round_up(bytes, second);
	return dress_new(o->real(bytes, second, third), front, size);
}
#endif

/* As the program requested it: what it may write to. */
EXPORT size_t malloc_usable_size(void *block)
{
	if (!block || UNLIKELY(!preload_ready()))
		return 0;
	if (UNLIKELY(arena_holds(block)))
		return arena_size(block);
	if (!preload_state.guards || !marks_has(block))
		return preload_real.malloc_usable_size ? preload_real.malloc_usable_size(block) : 0;
	return is_whole(block) ? head_of(block)->size & ~GUARD_TOLD : 0;
}

void guard_begin(uint64_t any)
{
	guard_secret = mix(any);
	guard_under = preload_real;
	preload_real.malloc = guard_malloc;
	preload_real.calloc = guard_calloc;
	preload_real.realloc = guard_realloc;
	preload_real.free = guard_free;
	if (guard_under.posix_memalign)
		preload_real.posix_memalign = guard_posix_memalign;
	if (guard_under.aligned_alloc)
		preload_real.aligned_alloc = guard_aligned_alloc;
	if (guard_under.memalign) {
		preload_real.memalign = guard_memalign;
		preload_real.valloc = guard_valloc;
		preload_real.pvalloc = guard_pvalloc;
	}
	preload_state.guards = true;
	guard_signals(true);
}
