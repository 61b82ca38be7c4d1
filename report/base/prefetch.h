/* prefetch.h - have memory brought near before it is used */
#ifndef REPORT_PREFETCH_H
#define REPORT_PREFETCH_H

/* Have what is at @p, which need not be mapped, brought near.  A function that only calls
 * __builtin_prefetch() seems to do nothing, and gcc leaves out calls of it: hence the asm. */
static inline void prefetch(const void *p)
{
	__builtin_prefetch(p);
	__asm__ volatile("");
}

#endif
