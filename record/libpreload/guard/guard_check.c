/* guard_check.c - what was written beyond the bounds of blocks: found, and reported */
#include <string.h>
#include <sys/syscall.h>

#include "record/libpreload/guard/guard_block.h"

#define WALK_NS 10000000000ull /* how long a walk may take, while the process is to end */

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

/* What was found around a block, before it is reported. */
struct findings {
	struct guard_finding of[2];
	uint32_t nr;
};

static void look_before(const uint8_t *block, struct guard_finding *f, struct findings *all)
{
	bool canary = scan(&f->overrun, block, block - GUARD_CANARY, block);
	bool head = !is_whole(block);

	f->size = head ? UINT64_MAX : head_of(block)->size;
	if (head)
		add_head(&f->overrun, block);
	all->nr += head || canary;
}

static void look_behind(const uint8_t *block, struct guard_finding *f, struct findings *all)
{
	f->size = head_of(block)->size;
	all->nr += scan(&f->overrun, block, block + f->size, end_of(block, f->size));
}

/* @block is ours, and stays there. */
static void look_around(const uint8_t *block, enum overrun_found found, struct findings *all)
{
	struct guard_finding none = {.addr = (uint64_t)block, .overrun = {.found = found}};

	all->nr = 0;
	all->of[0] = all->of[1] = none;
	if (is_whole(block) && head_of(block)->size & GUARD_TOLD)
		return;
	look_before(block, &all->of[0], all);
	if (is_whole(block))
		look_behind(block, &all->of[all->nr], all);
}

static void tell(const struct findings *all)
{
	for (uint32_t i = 0; i < all->nr; i++)
		guard_tell(&all->of[i]);
}

/* Is what is found reported, or at least counted? */
static bool tells(void)
{
	return preload_shared() || preload_own.unclocked;
}

void guard_check(const void *block, enum overrun_found found)
{
	struct findings all;

	if (!tells() || !marks_has(block))
		return;
	look_around(block, found, &all);
	tell(&all);
}

/* A mark that another follows is the second one of that block.  Telling may take as long as the
 * recorder does: by then the block may be gone. */
static void walk_to(uint8_t *block, void *found)
{
	struct findings all;

	all.nr = 0;
	__atomic_store_n(&preload_own.looked_at, block, __ATOMIC_SEQ_CST);
	if (marks_has(block) && !marks_has(block + 16))
		look_around(block, *(enum overrun_found *)found, &all);
	/* Of this it may be asked again, when an exec fails. */
	if (all.nr && is_whole(block))
		head_of(block)->size |= GUARD_TOLD;
	__atomic_store_n(&preload_own.looked_at, NULL, __ATOMIC_SEQ_CST);
	tell(&all);
}

void guard_note(enum preload_guard guard)
{
	struct preload_process *p = preload_state.process;

	if (preload_state.guards && p && preload_shared() && !preload_is_over(preload_shared()))
		__atomic_store_n(&p->guard, guard, __ATOMIC_RELEASE);
}

/* Another thread's walk finds the same; but the end of the process is not to come before its. */
static void wait_for_walk(void)
{
	uint64_t start = preload_monotonic_ns();

	while (__atomic_load_n(&preload_own.walks, __ATOMIC_ACQUIRE) &&
	       preload_monotonic_ns() - start < WALK_NS)
		preload_sleep(&preload_own.walks, 1, 1000000);
}

void guard_check_all(enum overrun_found found)
{
	if (!preload_state.guards || !tells() || !preload_is_parent() || walking)
		return;
	if (__atomic_exchange_n(&preload_own.walks, 1, __ATOMIC_ACQ_REL)) {
		wait_for_walk();
		return;
	}
	walking = true;
	marks_each(walk_to, &found);
	guard_note(PRELOAD_GUARD_LOOKED);
	walking = false;
	__atomic_store_n(&preload_own.walks, 0, __ATOMIC_RELEASE);
}

/* guard_tell() comes here, by stubs.S. */
void wrap_guard_tell(const struct guard_finding *f, const struct caller *c)
{
	preload_overrun(f->addr, f->size, &f->overrun, c->pc);
	if (preload_shared())
		preload_alloc((enum event_func)FUNC_OVERRUN, (const void *)f->addr, f->size, c);
}

/* This process, and not the child of a vfork, ends. */
static void process_ends(void)
{
	guard_check_all(OVERRUN_AT_EXIT);
	if (preload_is_parent())
		preload_code_ends();
}

__attribute__((destructor)) static void at_exit(void)
{
	process_ends();
}

/* A program that leaves so runs no destructors. */
EXPORT __attribute__((noreturn)) void _exit(int status)
{
	process_ends();
	for (;;)
		preload_syscall(SYS_exit_group, status, 0, 0, 0);
}

EXPORT __attribute__((noreturn)) void _Exit(int status)
{
	_exit(status);
}
