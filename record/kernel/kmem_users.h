/* kmem_users.h - the copies that the programs make of user space, bpf/kmem.h */
#ifndef RECORD_KMEM_USERS_H
#define RECORD_KMEM_USERS_H

#include <stdint.h>

#include "bpf/kmem.h"

/* Take the copy for the block at @addr, which was allocated at @time_ns, from @places, the
 * KMEM_USERS places that the programs write to; its own is free then, and *@taken one less.
 * Returns it, to be freed; NULL: there is none, or no memory. */
struct kmem_user *kmem_users_take(struct kmem_user *places, int32_t *taken, uint64_t addr,
				  uint64_t time_ns);

/* The first of the copied bytes, which is at the stack pointer. */
const uint8_t *kmem_users_stack(const struct kmem_user *u);

#endif
