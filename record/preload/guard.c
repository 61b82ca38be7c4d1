/* guard.c - bytes of our own around each block
 *
 *   front      head  canary  the block as the program asked for it  canary
 *   (aligned)  16    16                                            32 to 47
 *
 * The bytes of the canaries depend on the block's address, so that one copied onto another is
 * noticed; none of them is ASCII or NUL.  Which blocks are ours is known by a mark at their
 * address: what was given out before, or by others, has none and is left alone.  A block that is
 * aligned to more than 16 bytes has a second mark, 16 bytes before, for it begins elsewhere than
 * 32 bytes before.
 *
 * Nothing here takes a lock, and a child of fork() goes on with what it has.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "record/preload/guard.h"

#define EXPORT	 __attribute__((visibility("default")))
#define CANARY	 16u
#define BEHIND	 32u
#define PAGE	 4096u
#define PATIENCE (1u << 25)   /* some seconds */
#define TOLD	 (1ull << 63) /* in a head's size: its damage is known */

/* Before the canary before a block. */
struct head {
	uint64_t size;	/* bytes asked for */
	uint32_t front; /* bytes from where the allocator's block begins to the program's */
	uint32_t check; /* of both, and of the address */
};

#define FRONT	    ((size_t)sizeof(struct head) + CANARY)
#define LEAST_FRONT (2 * FRONT) /* of a block with a second mark, which lies in it too */

static struct real under;
static uint64_t secret;

/* The block that a walk looks at now: who frees it waits for that. */
static const uint8_t *looked_at;
static uint32_t walks;
static __thread bool walking __attribute__((tls_model("initial-exec")));

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Bytes to ask for, of a block of @size behind @front.  0: too many. */
static size_t whole(size_t front, size_t size)
{
	return size > SIZE_MAX / 4 || front > SIZE_MAX / 4 ? 0
							   : front + round_up(size + BEHIND, 16);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

/* What stands in each aligned word of the canaries. */
static uint64_t canary_of(const uint8_t *block)
{
	return mix((uint64_t)block ^ secret) | 0x8080808080808080ull;
}

static uint8_t canary_at(uint64_t canary, const uint8_t *at)
{
	return (uint8_t)(canary >> 8 * ((uint64_t)at & 7));
}

/* The canary as eight bytes from @at on. */
static uint64_t canary_from(uint64_t canary, const uint8_t *at)
{
	unsigned int by = 8 * ((uint64_t)at & 7);

	return canary >> by | canary << (-by & 63);
}

static void write_canary(uint64_t canary, uint8_t *at, const uint8_t *to)
{
	uint64_t eight = canary_from(canary, at);

	for (; to - at >= 8; at += 8)
		memcpy(at, &eight, 8);
	for (; at < to; at++)
		*at = canary_at(canary, at);
}

/* Is all of [@at, @to) as it was written? */
static bool has_canary(uint64_t canary, const uint8_t *at, const uint8_t *to)
{
	uint64_t expected = canary_from(canary, at), eight;

	for (; to - at >= 8; at += 8) {
		memcpy(&eight, at, 8);
		if (eight != expected)
			return false;
	}
	for (; at < to; at++)
		if (*at != canary_at(canary, at))
			return false;
	return true;
}

static struct head *head_of(const uint8_t *block)
{
	return (struct head *)(uintptr_t)(block - FRONT);
}

static uint32_t check_of(const uint8_t *block, const struct head *h)
{
	uint64_t size = h->size & ~TOLD;

	return (uint32_t)(mix(mix((uint64_t)block ^ ~secret) ^ size ^ (uint64_t)h->front << 48) >>
			  32);
}

static bool is_whole(const uint8_t *block)
{
	return head_of(block)->check == check_of(block, head_of(block));
}

/* Where the canary behind a block of @size ends. */
static const uint8_t *end_of(const uint8_t *block, size_t size)
{
	return block + round_up(size + BEHIND, 16);
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
	write_canary(canary, block - CANARY, block);
	write_canary(canary, block + size, end_of(block, size));
	marks_set(block);
	if (front != FRONT)
		marks_set(block - 16);
	return block;
}

/* The same of a new block; one that cannot be ours is the program's as it is. */
static void *dress_new(void *base, size_t front, size_t size)
{
	uint8_t *block = base ? dress(base, front, size) : NULL;

	return block ? block : base;
}

/* Take @block out of our hands: nobody else does from now on.  *@front is 0 where it is not known
 * any more.  False: it is not one of ours. */
static bool claim(uint8_t *block, size_t *front)
{
	bool aligned;

	if (!marks_has(block))
		return false;
	aligned = marks_clear(block - 16);
	if (!marks_clear(block))
		return false; /* another thread frees it too */
	/* Not for ever: where this is a child of fork, who walked is not here. */
	for (uint32_t i = 0; i < PATIENCE && !walking; i++) {
		if (LIKELY(__atomic_load_n(&looked_at, __ATOMIC_SEQ_CST) != block))
			break;
		__builtin_ia32_pause();
	}
	*front = !aligned ? FRONT : is_whole(block) ? head_of(block)->front : 0;
	return true;
}

static void unclaim(uint8_t *block, size_t front)
{
	marks_set(block);
	if (front != FRONT)
		marks_set(block - 16);
}

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

static void *guard_malloc(size_t size)
{
	size_t bytes = whole(FRONT, size);

	return bytes ? dress_new(under.malloc(bytes), FRONT, size) : no_memory();
}

static void *guard_calloc(size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &size) || !(bytes = whole(FRONT, size)))
		return no_memory();
	return dress_new(under.calloc(1, bytes), FRONT, size);
}

static void guard_free(void *block)
{
	size_t front;

	if (!claim(block, &front))
		under.free(block);
	else if (front)
		under.free((uint8_t *)block - front);
	/* Where the allocator's block begins was overwritten: it stays. */
}

static void *guard_realloc(void *old, size_t size)
{
	size_t front, bytes;
	uint8_t *base, *block;

	if (!old)
		return guard_malloc(size);
	if (!claim(old, &front))
		return under.realloc(old, size);
	if (!size && front)
		return under.realloc((uint8_t *)old - front, 0);
	bytes = front ? whole(front, size) : 0;
	base = bytes ? under.realloc((uint8_t *)old - front, bytes) : NULL;
	if (!base) {
		unclaim(old, front);
		return no_memory();
	}
	block = dress(base, front, size);
	return block ? block : memmove(base, base + front, size);
}

/* Aligned blocks begin at a multiple of @align behind the allocator's.  0: the allocator is to
 * refuse that. */
static size_t aligned_front(size_t align)
{
	if (align < sizeof(void *) || align & (align - 1))
		return 0;
	return align <= 16 ? FRONT : align < LEAST_FRONT ? LEAST_FRONT : align;
}

static int guard_posix_memalign(void **out, size_t align, size_t size)
{
	size_t front = aligned_front(align), bytes = whole(front, size);
	void *base = NULL;
	int err;

	if (!front)
		return under.posix_memalign(out, align, size);
	err = bytes ? under.posix_memalign(&base, align, bytes) : ENOMEM;
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
	return guard_aligned(under.aligned_alloc, align, size);
}

static void *guard_memalign(size_t align, size_t size)
{
	return guard_aligned(under.memalign, align, size);
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

/* As the program asked for it: what it may write to. */
EXPORT size_t malloc_usable_size(void *block)
{
	if (!block || UNLIKELY(!preload_ready()))
		return 0;
	if (UNLIKELY(arena_holds(block)))
		return arena_size(block);
	if (!preload_state.guards || !marks_has(block))
		return preload_real.malloc_usable_size ? preload_real.malloc_usable_size(block) : 0;
	return is_whole(block) ? head_of(block)->size & ~TOLD : 0;
}

/* What of [@from, @to) is not the canary, into @o, with offsets from @block.  False: all is. */
static bool scan(struct overrun *o, const uint8_t *block, const uint8_t *from, const uint8_t *to)
{
	uint64_t canary = canary_of(block);
	const uint8_t *first = NULL, *last = NULL;

	o->changed = 0;
	if (LIKELY(has_canary(canary, from, to)))
		return false;
	for (const uint8_t *at = from; at < to; at++) {
		if (*at == canary_at(canary, at))
			continue;
		first = first ? first : at;
		last = at;
		o->changed++;
	}
	if (!first)
		return false; /* another thread put it right meanwhile */
	o->offset = first - block;
	o->len = (uint32_t)(last - first) + 1;
	memcpy(o->bytes, first, o->len);
	return true;
}

/* The head is no canary, but it was one that was overwritten: all of it counts as changed. */
static void add_head(struct overrun *o, const uint8_t *block)
{
	uint32_t behind = o->changed ? (uint32_t)(o->offset + o->len + CANARY) : 0;

	o->changed += (uint32_t)sizeof(struct head);
	o->offset = -(int64_t)FRONT;
	o->len = (uint32_t)sizeof(struct head) + behind;
	memcpy(o->bytes, block - FRONT, o->len);
}

static bool look_before(const uint8_t *block, enum overrun_found found)
{
	struct guard_finding f = {.addr = (uint64_t)block, .overrun = {.found = found}};
	bool canary = scan(&f.overrun, block, block - CANARY, block), head = !is_whole(block);

	f.size = head ? UINT64_MAX : head_of(block)->size;
	if (head)
		add_head(&f.overrun, block);
	if (head || canary)
		guard_tell(&f);
	return head || canary;
}

static bool look_behind(const uint8_t *block, enum overrun_found found)
{
	size_t size = head_of(block)->size;
	struct guard_finding f = {
		.addr = (uint64_t)block, .size = size, .overrun = {.found = found}};

	if (!scan(&f.overrun, block, block + size, end_of(block, size)))
		return false;
	guard_tell(&f);
	return true;
}

/* @block is ours, and stays there.  True: it was told of. */
static bool look_around(const uint8_t *block, enum overrun_found found)
{
	bool before, behind;

	if (is_whole(block) && head_of(block)->size & TOLD)
		return false;
	before = look_before(block, found);
	behind = is_whole(block) && look_behind(block, found);
	return before || behind;
}

void guard_check(const void *block, enum overrun_found found)
{
	if (preload_shared() && marks_has(block))
		look_around(block, found);
}

/* A mark that another stands behind is the second one of that block. */
static void walk_to(uint8_t *block, void *found)
{
	__atomic_store_n(&looked_at, block, __ATOMIC_SEQ_CST);
	/* Of this it may be asked again, when an exec fails. */
	if (marks_has(block) && !marks_has(block + 16) &&
	    look_around(block, *(enum overrun_found *)found) && is_whole(block))
		head_of(block)->size |= TOLD;
	__atomic_store_n(&looked_at, NULL, __ATOMIC_SEQ_CST);
}

void guard_check_all(enum overrun_found found)
{
	if (!preload_state.guards || !preload_shared() || !preload_is_parent())
		return;
	/* One walk at a time; another has found the same. */
	if (!__atomic_fetch_add(&walks, 1, __ATOMIC_ACQ_REL)) {
		walking = true;
		marks_each(walk_to, &found);
		walking = false;
	}
	__atomic_fetch_sub(&walks, 1, __ATOMIC_ACQ_REL);
}

/* guard_tell() comes here, by stubs.S. */
void wrap_guard_tell(const struct guard_finding *f, const struct caller *c)
{
	preload_overrun(f->addr, f->size, &f->overrun, c->pc);
	preload_alloc((enum event_func)FUNC_OVERRUN, (const void *)f->addr, f->size, c);
}

void guard_begin(uint64_t any)
{
	secret = mix(any);
	under = preload_real;
	preload_real.malloc = guard_malloc;
	preload_real.calloc = guard_calloc;
	preload_real.realloc = guard_realloc;
	preload_real.free = guard_free;
	if (under.posix_memalign)
		preload_real.posix_memalign = guard_posix_memalign;
	if (under.aligned_alloc)
		preload_real.aligned_alloc = guard_aligned_alloc;
	if (under.memalign) {
		preload_real.memalign = guard_memalign;
		preload_real.valloc = guard_valloc;
		preload_real.pvalloc = guard_pvalloc;
	}
	preload_state.guards = true;
}

__attribute__((destructor)) static void at_exit(void)
{
	guard_check_all(OVERRUN_AT_EXIT);
}

/* Who leaves so runs no destructors. */
EXPORT __attribute__((noreturn)) void _exit(int status)
{
	guard_check_all(OVERRUN_AT_EXIT);
	for (;;)
		preload_syscall(SYS_exit_group, status, 0, 0, 0);
}

EXPORT __attribute__((noreturn)) void _Exit(int status)
{
	_exit(status);
}
