/* side_by_side.h - work that waits for the kernel most of the time, in many threads at once */
#ifndef RECORD_SIDE_BY_SIDE_H
#define RECORD_SIDE_BY_SIDE_H

#include <stddef.h>

#define SIDE_BY_SIDE_MOST 256 /* threads */

/* Call @work(@ctx, i) for each i below @nr, in up to @threads threads, SIDE_BY_SIDE_MOST at most,
 * with stacks of @stack bytes each.  What finds no thread is done in this one.  Returns when all is
 * done. */
void side_by_side(size_t nr, size_t threads, size_t stack, void (*work)(void *ctx, size_t i),
		  void *ctx);

#endif
