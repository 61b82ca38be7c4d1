/* beside.h - what is read beside the passes of a snapshot: the allocator's blocks, and where the
 * resident memory is
 *
 * Without either the passes are as good.
 */
#ifndef RECORD_REACH_BESIDE_H
#define RECORD_REACH_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/heap/heap.h"
#include "record/reach/smaps.h"

/* All of it is the walking thread's while that runs. */
struct reach_beside {
	struct heap *heap; /* NULL: it is not walked, as heap_err says */
	bool begun;	   /* the heap was walked before the first pass */
	int heap_err, smaps_err;
	int smaps_fd; /* -errno: it cannot be opened */
	struct smaps smaps;
	uint64_t smaps_ns;
};

/* Begin, with a walk through the allocator's memory if @heap. */
void beside_begin(struct reach_beside *b, bool heap);

/* Before a pass, or before the process is stopped for one: the first time the heap is walked. */
void beside_before(struct reach_beside *b, const struct heap_place *place);

/* Behind a pass; if it is the @last, the heap is walked once more, and smaps are read. */
void beside_after(struct reach_beside *b, const struct heap_place *place, bool last);

/* Write what was found of process @tgid, whose mappings are @maps.  Returns as the writer. */
int beside_write(struct reach_beside *b, struct mlk_writer *w, const struct maps *maps,
		 uint32_t tgid, uint32_t snapshot);

/* Forget all. */
void beside_end(struct reach_beside *b);

#endif
