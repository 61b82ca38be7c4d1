/* pages.h - which pages of a range a process has: the others need not be read, nor made */
#ifndef RECORD_TARGET_PAGES_H
#define RECORD_TARGET_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGES_PAGE 4096u
#define PAGES_MOST 4096 /* runs, or pages, that are asked for at once */

/* Runs of pages that are there.  All zero but fd: none asked for yet. */
struct pages {
	int fd;		   /* of /proc/PID/pagemap, borrowed */
	bool no_scan;	   /* the kernel has no PAGEMAP_SCAN (before 6.7) */
	bool no_guard;	   /* nor tells guard pages by it (before 6.16) */
	bool only_present; /* pages in swap are not wanted */
	struct {
		uint64_t start, end;
	} runs[PAGES_MOST];
	size_t nr, next;
	uint64_t asked; /* up to which address */
};

/* Begin at @start, the beginning of a page. */
void pages_begin(struct pages *p, uint64_t start);

/* The next run before @end of pages that are in memory or, if wanted, in swap, at least one page,
 * in *@from and *@to.  Guard pages (MADV_GUARD_INSTALL, as below glibc's stacks from version 2.42
 * on) are none: they have no memory, and nobody can read them.  Returns 1, 0 when there is none, or
 * -errno. */
int pages_next(struct pages *p, uint64_t end, uint64_t *from, uint64_t *to);

/* Begin anew, and show @visit what of [@start, @end) is there, in pieces [from, to) of one page
 * each, until it returns something but 0.  Returns what it returned, or 1: not all could be asked
 * for. */
int pages_each(struct pages *p, uint64_t start, uint64_t end,
	       int (*visit)(void *arg, uint64_t from, uint64_t to), void *arg);

#endif
