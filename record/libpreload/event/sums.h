/* sums.h - what threads, this process and its call sites have outstanding, where threads are
 * recorded or only counted */
#ifndef LIBPRELOAD_SUMS_H
#define LIBPRELOAD_SUMS_H

#include "record/libpreload/account.h"
#include "record/libpreload/event/block_table.h"
#include "record/libpreload/event/thread_ring.h"

#define SUMS_SITES 16384u /* a power of two */
#define SUMS_TRIES 64u

/* What this process alone knows.  A child of fork() has a copy: of blocks it may free it knows so
 * whether they were recorded, but they are in none of its sums. */
struct process_sums {
	struct block_table blocks;
	int64_t outstanding; /* bytes */
	uint64_t full;	     /* its allocations are recorded */
	struct call_site {
		uint64_t pc; /* that calls return to; 0: free */
		int64_t outstanding;
		uint64_t full;
		uint64_t unused;
	} sites[SUMS_SITES];
};

/* Of what this process allocates, see struct block_info. */
uint16_t sums_generation(void);

/* This is the only thread of a child of fork(). */
void sums_child(void);

/* That of this process.  NULL: no memory, or making it is forbidden. */
struct process_sums *sums_get(void);

/* This thread's account, made if it is new.  NULL: there is no place for one, or it is forbidden to
 * ask who this thread is. */
struct preload_account *sums_own(struct preload_header *h);

/* Add @nr to @counter, of 64 bits, by one instruction, because a handler may come between; only to
 * this thread's own. */
static inline void sums_count(void *counter, uint64_t nr)
{
	uint64_t __attribute__((may_alias)) *to = counter;

	__asm__("addq %1, %0" : "+m"(*to) : "er"(nr) : "cc");
}

/* Count what is left out, with the thread of @own; NULL: with those that have no account. */
void sums_skip(struct preload_header *h, struct preload_account *own, enum event_skip why,
	       uint64_t bytes);

/* The thread of @own, or NULL, allocates @block for the call @at: add it to all sums,
 * and set its site.  Returns whether it is recorded, by what is chosen or has reached a trigger. */
bool sums_add(struct preload_header *h, struct preload_account *own, struct block_info *block,
	      const struct caller *at);

/* @bytes more of @block are outstanding, or less if below 0, in all sums that it is part of; the
 * thread of @own says so.  A parent's is in none, in this function and the next. */
void sums_change(struct preload_header *h, struct preload_account *own,
		 const struct block_info *block, int64_t bytes);

/* Of @block, which was only counted, the thread of @own frees @bytes, and @nr blocks: none if that
 * is but a part. */
void sums_free(struct preload_header *h, struct preload_account *own,
	       const struct block_info *block, uint64_t nr, uint64_t bytes);

#endif
