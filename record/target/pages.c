/* pages.c - see pages.h */
#include "record/target/pages.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of linux/fs.h, which Debian 12 has without it. */
struct scan_region {
	uint64_t start, end, categories;
};

/* Arguments of PAGEMAP_SCAN, Linux 6.7. */
struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN	     _IOWR('f', 16, struct scan_arg)
#define SCAN_PRESENT (1u << 3)
#define SCAN_SWAPPED (1u << 4)
#define SCAN_GUARD   (1u << 8) /* Linux 6.16; such pages are SCAN_SWAPPED, too */

#define PRESENT (UINT64_C(1) << 63) /* of an entry of the file, Documentation/mm/pagemap */
#define SWAPPED (UINT64_C(1) << 62)
#define GUARD	(UINT64_C(1) << 58) /* Linux 6.15; such a page is SWAPPED, too */

void pages_begin(struct pages *p, uint64_t start)
{
	p->nr = p->next = 0;
	p->asked = start;
}

static void add_run(struct pages *p, uint64_t start, uint64_t end)
{
	if (p->nr && p->runs[p->nr - 1].end == start) {
		p->runs[p->nr - 1].end = end;
		return;
	}
	p->runs[p->nr].start = start;
	p->runs[p->nr++].end = end;
}

/* Ask for the next runs before @end.  Returns 0 or -errno. */
static int scan(struct pages *p, uint64_t end)
{
	const uint64_t wanted = SCAN_PRESENT | (p->only_present ? 0 : SCAN_SWAPPED);
	const uint64_t guard = p->no_guard ? 0 : SCAN_GUARD;
	struct scan_region regions[256];
	struct scan_arg arg = {.size = sizeof(arg),
			       .start = p->asked,
			       .end = end,
			       .vec = (uintptr_t)regions,
			       .vec_len = sizeof(regions) / sizeof(regions[0]),
			       .category_anyof_mask = wanted,
			       .return_mask = wanted | guard};
	int nr = ioctl(p->fd, SCAN, &arg);

	if (nr < 0 && errno == EINVAL && guard) {
		p->no_guard = true;
		return scan(p, end);
	}
	if (nr < 0)
		return -errno;
	for (int i = 0; i < nr; i++)
		if (!(regions[i].categories & guard))
			add_run(p, regions[i].start, regions[i].end);
	/* what it did not come to is asked for again */
	p->asked = arg.walk_end > p->asked ? arg.walk_end : end;
	return 0;
}

/* The same by reading the file: eight bytes a page, whether it is there or not. */
static int read_entries(struct pages *p, uint64_t end)
{
	uint64_t entries[PAGES_MOST];
	size_t most = (end - p->asked) / PAGES_PAGE < PAGES_MOST
			      ? (size_t)((end - p->asked) / PAGES_PAGE)
			      : PAGES_MOST;
	ssize_t got = pread(p->fd, entries, most * sizeof(entries[0]),
			    (off_t)(p->asked / PAGES_PAGE * sizeof(entries[0])));

	if (got < (ssize_t)sizeof(entries[0]))
		return got < 0 ? -errno : -ESRCH; /* there is no memory any more */
	for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, p->asked += PAGES_PAGE)
		if (entries[i] & (p->only_present ? PRESENT : PRESENT | SWAPPED) &&
		    !(entries[i] & GUARD))
			add_run(p, p->asked, p->asked + PAGES_PAGE);
	return 0;
}

int pages_next(struct pages *p, uint64_t end, uint64_t *from, uint64_t *to)
{
	while (p->next == p->nr) {
		int err = -ENOTTY;

		p->nr = p->next = 0;
		if (p->asked >= end)
			return 0;
		if (!p->no_scan)
			err = scan(p, end);
		if (err == -ENOTTY || err == -EINVAL) {
			p->no_scan = true;
			err = read_entries(p, end);
		}
		if (err)
			return err;
	}
	*from = p->runs[p->next].start;
	*to = p->runs[p->next++].end;
	return 1;
}

int pages_each(struct pages *p, uint64_t start, uint64_t end,
	       int (*visit)(void *arg, uint64_t from, uint64_t to), void *arg)
{
	const uint64_t mask = PAGES_PAGE - 1, behind = (end + mask) & ~mask;
	uint64_t from, to;
	int more = 1, err = 0;

	pages_begin(p, start & ~mask);
	while (!err && (more = pages_next(p, behind, &from, &to)) > 0)
		for (; from < to && !err; from += PAGES_PAGE) {
			uint64_t at = from < start ? start : from;
			uint64_t until = end < from + PAGES_PAGE ? end : from + PAGES_PAGE;

			err = at < until ? visit(arg, at, until) : 0;
		}
	return err ? err : more < 0;
}
