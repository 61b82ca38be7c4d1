/* info_heap.h - what `mleak info` tells of walks through allocators' memory */
#ifndef REPORT_INFO_HEAP_H
#define REPORT_INFO_HEAP_H

#include "format/reader.h"

/* The part of a walk that was read; all zero at first. */
struct info_heap {
	uint64_t blocks[MLK_HEAP_STATES], bytes[MLK_HEAP_STATES];
};

/* Take in @record, an MLK_RECORD_HEAP, and print a line of its walk if it is the last of it. */
void info_heap_put(struct info_heap *h, const struct mlk_record *record);

#endif
