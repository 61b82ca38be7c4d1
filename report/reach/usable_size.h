/* usable_size.h - what allocators make of a size that they are asked for */
#ifndef REPORT_USABLE_SIZE_H
#define REPORT_USABLE_SIZE_H

#include <stdint.h>

/* Bytes that a program may use which asked the allocator of that name for @size: "jemalloc 5.3",
 * "tcmalloc"; all others are taken for glibc.  As @size if that is so large that it would not fit.
 */
uint64_t usable_size(const char *allocator, uint64_t size);

/* The least that may have been asked for if @size bytes may be used.  Sizes of glibc's small blocks
 * are no multiples of 16, those of jemalloc are; so are those of tcmalloc, which below 1 KiB are no
 * farther apart. */
uint64_t usable_size_least(uint64_t size);

#endif
