/* jemalloc_ended.c - what caches of threads that ended have left in free memory: see jemalloc.h
 *
 * Their stacks still have the addresses of all blocks that went through them last.  The program
 * never knew these words, so no block is held by them, nor can it be by stale ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "record/heap/jemalloc.h"
#include "record/target/pages.h"

/* A free extent: from where on it is still to be looked at, and its end. */
struct rest {
	uint64_t next, end;
};

/* Look at the pages of @r up to @to. */
static int look_at_pages(struct jemalloc *j, const struct heap_memory *m, struct rest *r,
			 uint64_t to)
{
	const uint64_t bytes = (j->stack_bytes + HEAP_PAGE - 1) & ~(uint64_t)(HEAP_PAGE - 1);
	int err = 0;

	while (r->next < to && !err) {
		uint64_t word, len = HEAP_PAGE;

		if (!heap_memory_read(m, r->next, &word, sizeof(word)) &&
		    word == JEMALLOC_MARK_BEFORE) {
			len = r->end - r->next < bytes ? r->end - r->next : bytes;
			err = jemalloc_add_own(j, r->next, len);
		}
		r->next += len;
	}
	return err;
}

/* Look at the extent @r, which is free. */
static int look_at_extent(struct jemalloc *j, const struct heap_memory *m, struct pages *pages,
			  struct rest *r)
{
	uint64_t from, to;
	int err = 0;

	pages_begin(pages, r->next);
	while (!err && !heap_memory_stopped(m) && pages_next(pages, r->end, &from, &to) > 0) {
		r->next = from < r->next ? r->next : from;
		err = look_at_pages(j, m, r, to);
	}
	return err;
}

int jemalloc_find_ended(struct jemalloc *j, struct heap_memory *m, const struct heap_list *list)
{
	struct pages *pages = j->stack_bytes ? calloc(1, sizeof(*pages)) : NULL;
	int err = 0;

	if (!pages)
		return j->stack_bytes ? -ENOMEM : 0;
	pages->fd = m->pagemap;
	for (size_t i = 0; i < list->nr && !err; i++) {
		struct rest r = {list->v[i].address, list->v[i].address + list->v[i].size};

		if (list->v[i].state == MLK_HEAP_FREE && r.next % HEAP_PAGE == 0 &&
		    r.end % HEAP_PAGE == 0)
			err = look_at_extent(j, m, pages, &r);
	}
	free(pages);
	return err;
}
