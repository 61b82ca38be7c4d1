/* idle.h - memory in which nothing of the program's is: its words hold no block */
#ifndef RECORD_REACH_IDLE_H
#define RECORD_REACH_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"

/* Bytes of the process from @start on. */
struct idle_area {
	uint64_t start, end;
};

/* Such areas; all zero: none. */
struct idle {
	struct idle_area *v;
	size_t nr, room;
};

/* The memory of a process, and its mappings; all is borrowed. */
struct idle_memory {
	/* Copy the @bytes at @address to @to, all or nothing, without making pages that are not
	 * there.  Returns 0, or not 0: they cannot be read. */
	int (*read)(void *arg, uint64_t address, void *to, size_t bytes);
	void *arg;
	const struct mlk_range *ranges; /* ascending */
	size_t nr;
};

/* Find the areas, ascending; they may overlap.  @idle is to be released in any case.  Returns 0 or
 * -ENOMEM. */
int idle_find(struct idle *idle, const struct idle_memory *memory);

/* The steps of it: the stacks of threads that have ended, which glibc (2.34 or later) keeps for
 * later threads; and with the descriptors (struct pthread) of all other threads, jemalloc's caches.
 * Return 0 or -ENOMEM. */
struct idle_threads {
	uint64_t *descriptors; /* to be freed in any case */
	size_t nr, room;
};
int idle_stacks(struct idle *idle, const struct idle_memory *memory, struct idle_threads *threads);
int idle_jemalloc(struct idle *idle, const struct idle_memory *memory,
		  const struct idle_threads *threads);

/* Where jemalloc's own memory may begin, and how many words of it are known by their form. */
#define IDLE_BASE_ALIGN (2u << 20)
#define IDLE_BASE_WORDS 5u

/* How many bytes of it begin at @address, where @words are; 0: it is none. */
uint64_t idle_jemalloc_base(const uint64_t *words, uint64_t address);

/* For them: add the words that lie in an area, if there are any.  Returns 0 or -ENOMEM. */
int idle_add(struct idle *idle, uint64_t start, uint64_t end);

/* The mapping that holds @address; NULL: none. */
const struct mlk_range *idle_range_of(const struct idle_memory *memory, uint64_t address);

/* Is it memory of no file? */
bool idle_is_anonymous(const struct mlk_range *range);

/* Forget them. */
void idle_release(struct idle *idle);

#endif
