/* guard_look.c - what was written beyond the bounds of blocks: found, and told of */
#include <string.h>
#include <sys/syscall.h>

#include "record/preload/guard_block.h"

#define EXPORT __attribute__((visibility("default")))

static __thread bool walking __attribute__((tls_model("initial-exec")));

bool guard_is_looked_at(const uint8_t *block)
{
	return __atomic_load_n(&preload_own.looked_at, __ATOMIC_SEQ_CST) == block && !walking;
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
	uint32_t behind = o->changed ? (uint32_t)(o->offset + o->len + GUARD_CANARY) : 0;

	o->changed += (uint32_t)sizeof(struct head);
	o->offset = -(int64_t)GUARD_FRONT;
	o->len = (uint32_t)sizeof(struct head) + behind;
	memcpy(o->bytes, block - GUARD_FRONT, o->len);
}

static bool look_before(const uint8_t *block, enum overrun_found found)
{
	struct guard_finding f = {.addr = (uint64_t)block, .overrun = {.found = found}};
	bool canary = scan(&f.overrun, block, block - GUARD_CANARY, block), head = !is_whole(block);

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

	if (is_whole(block) && head_of(block)->size & GUARD_TOLD)
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
	__atomic_store_n(&preload_own.looked_at, block, __ATOMIC_SEQ_CST);
	/* Of this it may be asked again, when an exec fails. */
	if (marks_has(block) && !marks_has(block + 16) &&
	    look_around(block, *(enum overrun_found *)found) && is_whole(block))
		head_of(block)->size |= GUARD_TOLD;
	__atomic_store_n(&preload_own.looked_at, NULL, __ATOMIC_SEQ_CST);
}

void guard_check_all(enum overrun_found found)
{
	if (!preload_state.guards || !preload_shared() || !preload_is_parent())
		return;
	/* One walk at a time; another has found the same. */
	if (!__atomic_exchange_n(&preload_own.walks, 1, __ATOMIC_ACQ_REL)) {
		walking = true;
		marks_each(walk_to, &found);
		walking = false;
		__atomic_store_n(&preload_own.walks, 0, __ATOMIC_RELEASE);
	}
}

/* guard_tell() comes here, by stubs.S. */
void wrap_guard_tell(const struct guard_finding *f, const struct caller *c)
{
	preload_overrun(f->addr, f->size, &f->overrun, c->pc);
	preload_alloc((enum event_func)FUNC_OVERRUN, (const void *)f->addr, f->size, c);
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
