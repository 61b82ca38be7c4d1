/* pending.h - allocations and frees that are to be written when their turn has come */
#ifndef RECORD_PENDING_H
#define RECORD_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/kmem.h"

/* Something that is to be written. */
struct pending {
	uint64_t time_ns, addr, size;
	uint64_t alloc_ns; /* of the block */
	uint64_t order;	   /* in which it became known */
	uint32_t tid, stack;
	uint32_t origin; /* of an ALLOC */
	uint32_t tgid;
	struct kmem_user *user; /* of an ALLOC, owned; NULL: none is known */
	uint64_t cache;
	uint8_t kind;  /* enum mlk_kind */
	uint8_t block; /* enum kmem_kind */
	bool dropped;
};

/* All zero: none. */
struct pending_list {
	struct pending *v;
	size_t nr, room;
	size_t nr_users; /* that have a copy of user space */
};

/* Add a copy of @p, which owns p->user then.  Returns 0 or -ENOMEM. */
int pending_add(struct pending_list *list, const struct pending *p);

/* Mark frees of blocks that were to be written at the look of @cut_ns, but not at that of
 * @last_cut_ns, and were gone before their turn: neither is written. */
void pending_drop_unseen(struct pending_list *list, uint64_t last_cut_ns, uint64_t cut_ns);

/* Sort by time, and call @write with @arg for all before @until_ns that are not dropped; the rest
 * stays.  Returns 0, or the error of @write, at which it stops. */
int pending_write(struct pending_list *list, uint64_t until_ns,
		  int (*write)(void *arg, const struct pending *p), void *arg);

/* Forget all. */
void pending_release(struct pending_list *list);

#endif
