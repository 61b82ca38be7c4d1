/* heap_memory.h - memory of a process that changes meanwhile, read piece by piece */
#ifndef RECORD_HEAP_MEMORY_H
#define RECORD_HEAP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"
#include "record/target/pages.h"

#define HEAP_WINDOW (64u << 10) /* bytes that are read at once */
#define HEAP_PAGE   4096u

#define HEAP_MOST_GROWN (UINT64_C(1) << 30) /* bytes */

/* A process's memory.  Zero but for the first members: nothing was read yet. */
struct heap_memory {
	int mem, pagemap;		/* /proc/PID/mem and pagemap, borrowed */
	const struct mlk_range *ranges; /* what is writable, ascending; borrowed */
	size_t nr;
	uint64_t brk_end;	  /* of [heap] when they were listed; 0: there was none */
	const _Atomic bool *stop; /* end early; NULL: never */
	uint64_t at;		  /* where the window begins */
	size_t len;		  /* bytes in it */
	uint8_t window[HEAP_WINDOW];
};

/* Is the walk to end early? */
static inline bool heap_memory_stopped(const struct heap_memory *m)
{
	return m->stop && *m->stop;
}

/* Copy the @len bytes at @address as they are now.  Returns 0 or -EFAULT. */
int heap_memory_read(const struct heap_memory *m, uint64_t address, void *to, size_t len);

/* The same, of at most a page's length; what lies in pages that are not there is not read, as that
 * would make them: -EFAULT. */
int heap_memory_read_present(const struct heap_memory *m, uint64_t address, void *to, size_t len);

/* Copy the @len bytes at @address as they are now; what lies in pages that are not there is zero,
 * and not made.  @pages is for its use, with fd set.  Returns 0 or -EFAULT. */
int heap_memory_copy(const struct heap_memory *m, struct pages *pages, uint64_t address, void *to,
		     size_t len);

/* The @len bytes at @address, at most HEAP_WINDOW: as they were when the window was read that they
 * lie in.  Valid until the next call.  NULL: they cannot be read. */
const uint8_t *heap_memory_peek(struct heap_memory *m, uint64_t address, size_t len);

/* Forget the window. */
void heap_memory_forget(struct heap_memory *m);

/* The range that holds @address, or NULL. */
const struct mlk_range *heap_memory_range(const struct heap_memory *m, uint64_t address);

/* May the process have memory at @address? What brk(2) gives may have grown by up to
 * HEAP_MOST_GROWN since the ranges were listed. */
bool heap_memory_may_have(const struct heap_memory *m, uint64_t address);

/* The word at @bytes. */
uint64_t heap_word(const uint8_t *bytes);

#endif
