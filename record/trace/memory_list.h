/* memory_list.h - samples of memory that are not in the trace yet */
#ifndef RECORD_MEMORY_LIST_H
#define RECORD_MEMORY_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"

struct mlk_writer;

#define MEMORY_LIST_MAX 64

/* All zero: none.  They wait for others, at most some seconds: a chunk for each would be mostly
 * header. */
struct memory_list {
	struct mlk_memory all[MEMORY_LIST_MAX];
	size_t nr;
};

/* Append @sample; all go to @w when the first has waited for some seconds, or there are too many.
 * Returns 0 or as mlk_writer_memory(). */
int memory_list_add(struct memory_list *list, struct mlk_writer *w,
		    const struct mlk_memory *sample);

/* Write all to @w, so that there are none.  Returns as mlk_writer_memory(). */
int memory_list_flush(struct memory_list *list, struct mlk_writer *w);

#endif
