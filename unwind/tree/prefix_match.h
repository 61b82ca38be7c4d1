/* prefix_match.h - where stacks that begin with the same frames part
 *
 * A fork says: a walk that has found the first @nr frames of stack @from, and then meets @word, is
 * in stack @to, whose frame @nr is node @at.  From fork to fork each stack that was met before is
 * found without a look at its callers' tree.  Forks may be forgotten at any time.
 */
#ifndef DWUNW_PREFIX_MATCH_H
#define DWUNW_PREFIX_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/hash.h"
#include "unwind/tree/stack_tree.h"

#define DWUNW_FORK_PROBES 8		      /* so many slots in a row may hold a fork */
#define DWUNW_FORK_END	  ((uint32_t)1 << 31) /* of nr: the frames end there; word is the status */

/* Where two stacks part. */
struct dwunw_fork {
	uint64_t word; /* the pc met; of the innermost frame, what dwunw_fork_first() makes of it */
	uint32_t from; /* the id of a stack; or NO_NODE, and then nr is 0 */
	uint32_t nr;   /* and END */
	uint32_t space; /* low half of its serial number: all frames of @to are of this epoch */
	uint32_t to;	/* the id of another one; NO_NODE: the slot is free */
	uint32_t at;
	uint32_t unused;
};

_Static_assert(sizeof(struct dwunw_fork) == 32, "two in a cache line");

/* All forks, found by their keys. */
struct dwunw_prefix_match {
	struct dwunw_fork *slots;
	uint32_t mask; /* number of slots - 1 */
	uint32_t nr;   /* taken */
};

/* A set without forks.  Returns 0 or -ENOMEM; to be released in both cases. */
int dwunw_prefix_match_init(struct dwunw_prefix_match *forks);
void dwunw_prefix_match_release(struct dwunw_prefix_match *forks);

/* Add @fork, all but its @at being set, if what it says is true and of use; others may be forgotten
 * for it. */
void dwunw_prefix_match_learn(struct dwunw_prefix_match *forks, const struct dwunw_stack_tree *tree,
			      struct dwunw_fork *fork);

/* The word for a stack of @len bytes at @sp with frame 0 at @pc.  @top is what is at @sp: in a
 * function that was just called, its return address. */
static inline uint64_t dwunw_fork_first(uint64_t pc, uint64_t sp, uint64_t len, uint64_t top)
{
	return pc ^ sp << 20 ^ len << 41 ^ top << 11;
}

/* The hash of a fork's key. */
static inline uint32_t dwunw_fork_hash(uint64_t word, uint32_t from, uint32_t nr)
{
	return (uint32_t)dwunw_fold(word ^ (uint64_t)from << 32 ^ (uint64_t)nr << 20,
				    0x9e3779b97f4a7c15u);
}

/* The fork of that key, or NULL; valid until one is added. */
static inline const struct dwunw_fork *dwunw_prefix_match_find(
	const struct dwunw_prefix_match *forks, uint64_t word, uint32_t from, uint32_t nr,
	uint32_t space)
{
	uint32_t i = dwunw_fork_hash(word, from, nr);

	for (uint32_t end = i + DWUNW_FORK_PROBES; i != end; i++) {
		const struct dwunw_fork *fork = &forks->slots[i & forks->mask];

		if (__builtin_expect(fork->word == word && fork->from == from && fork->nr == nr &&
					     fork->space == space,
				     1))
			return fork;
		if (!fork->to)
			break;
	}
	return NULL;
}

#endif
