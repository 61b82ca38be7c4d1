/* kmem_users.c - see kmem_users.h */
#include "record/kernel/kmem_users.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

/* The place that has the copy, or NULL. */
static struct kmem_user *find(struct kmem_user *places, uint64_t addr, uint64_t time_ns)
{
	for (uint32_t n = 0; n < KMEM_USER_PLACES; n++) {
		struct kmem_user *u = &places[KMEM_USER_AT(addr, n)];

		if (__atomic_load_n(&u->addr, __ATOMIC_ACQUIRE) == addr && u->time_ns == time_ns)
			return u;
	}
	return NULL;
}

/* Copy @from, which programs may write to.  False: it is another's by now, or its bytes cannot be
 * as they say. */
static bool copy_place(const struct kmem_user *from, struct kmem_user *to, uint64_t addr,
		       uint64_t time_ns)
{
	memcpy(to, from, sizeof(*to));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* The address may have been given out again, and its block be at this place. */
	return to->addr == addr && to->time_ns == time_ns &&
	       __atomic_load_n(&from->time_ns, __ATOMIC_RELAXED) == time_ns && to->len &&
	       to->len <= KMEM_USER_STACK - to->regs[KMEM_REGS_SP] % PAGE;
}

struct kmem_user *kmem_users_take(struct kmem_user *places, int32_t *taken, uint64_t addr,
				  uint64_t time_ns)
{
	struct kmem_user *u = find(places, addr, time_ns), *copy = u ? malloc(sizeof(*copy)) : NULL;
	bool is_whole = false;

	if (!u)
		return NULL;
	is_whole = copy && copy_place(u, copy, addr, time_ns);
	if (copy && !is_whole && u->time_ns != time_ns) {
		free(copy);
		return NULL;
	}
	/* The block may have been freed meanwhile, and the place be another's: neither is it. */
	if (__atomic_compare_exchange_n(&u->addr, &addr, 0, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		__atomic_sub_fetch(taken, 1, __ATOMIC_RELAXED);
		if (is_whole)
			return copy;
	}
	free(copy);
	return NULL;
}

const uint8_t *kmem_users_stack(const struct kmem_user *u)
{
	return u->stack + u->regs[KMEM_REGS_SP] % PAGE;
}
