/* given_back.c - see given_back.h */
#include "record/process/given_back.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE	    4096u
#define MOST_RANGES 4096u
#define ENTRIES	    1024u /* of pagemap that are read at once */

/* An entry of /proc/PID/pagemap, as Linux's Documentation/admin-guide/mm/pagemap.rst has it: the
 * page is in memory, or on swap. */
#define ENTRY_USED (3ull << 62)

/* The first range that ends behind @addr. */
static size_t first_behind(const struct given_back *g, uint64_t addr)
{
	size_t low = 0, high = g->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g->v[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Put @range at place @i. */
static void insert_range(struct given_back *g, size_t i, struct given_range range)
{
	struct given_range *v = g->v;

	if (g->nr == g->room && g->room < MOST_RANGES) {
		v = realloc(g->v, (g->room ? 2 * g->room : 16) * sizeof(*v));
		if (v) {
			g->room = g->room ? 2 * g->room : 16;
			g->v = v;
		}
	}
	if (g->nr == g->room) {
		g->left_out++;
		return;
	}
	memmove(&g->v[i + 1], &g->v[i], (g->nr - i) * sizeof(*g->v));
	g->v[i] = range;
	g->nr++;
}

static void remove_ranges(struct given_back *g, size_t i, size_t nr)
{
	if (!nr)
		return;
	memmove(&g->v[i], &g->v[i + nr], (g->nr - i - nr) * sizeof(*g->v));
	g->nr -= nr;
}

/* Forget [@start, @end). */
static void cut_out(struct given_back *g, uint64_t start, uint64_t end)
{
	size_t i = first_behind(g, start), last;

	if (i < g->nr && g->v[i].start < start) {
		struct given_range rest = {end, g->v[i].end};

		g->v[i++].end = start;
		if (rest.start < rest.end) {
			insert_range(g, i, rest);
			return;
		}
	}
	for (last = i; last < g->nr && g->v[last].end <= end; last++)
		;
	remove_ranges(g, i, last - i);
	if (i < g->nr && g->v[i].start < end)
		g->v[i].start = end;
}

/* [@start, @end) is given back. */
static void add_range(struct given_back *g, uint64_t start, uint64_t end)
{
	size_t i;

	cut_out(g, start, end);
	i = first_behind(g, start);
	if (i && g->v[i - 1].end == start)
		g->v[i - 1].end = end;
	else if (i < g->nr && g->v[i].start == end)
		g->v[i].start = start;
	else
		insert_range(g, i, (struct given_range){start, end});
}

void given_back_note(struct given_back *g, const struct mlk_event *event)
{
	uint64_t end = event->addr + event->size;

	end = end < event->addr || end > UINT64_MAX - PAGE ? UINT64_MAX - PAGE + 1
							   : (end + PAGE - 1) & -(uint64_t)PAGE;
	if (event->kind == MLK_EXEC)
		given_back_release(g);
	else if (event->addr >= end)
		return;
	else if (event->kind == MLK_PAGES && event->func == MLK_PAGES_GIVEN_BACK)
		add_range(g, event->addr, end);
	else if (event->kind == MLK_UNMAP || event->kind == MLK_ALLOC ||
		 (event->kind == MLK_PAGES && event->func == MLK_PAGES_LAZILY))
		cut_out(g, event->addr, end);
}

/* What is being looked at. */
struct look {
	struct given_back *g;
	int fd; /* pagemap */
	void (*found)(void *arg, uint64_t addr, uint64_t size);
	void *arg;
};

static void found_range(const struct look *look, uint64_t start, uint64_t end)
{
	if (start == end)
		return;
	cut_out(look->g, start, end);
	look->found(look->arg, start, end - start);
}

/* Look at [@start, @end).  Returns where it ended: before @end if it cannot be read. */
static uint64_t look_at(const struct look *look, uint64_t start, uint64_t end)
{
	uint64_t entries[ENTRIES], used = start, at = start;
	ssize_t got;

	while (at < end) {
		size_t nr = (end - at) / PAGE < ENTRIES ? (size_t)((end - at) / PAGE) : ENTRIES;

		got = pread(look->fd, entries, nr * 8, (off_t)(at / PAGE * 8));
		if (got < 8)
			break;
		for (size_t i = 0; i < (size_t)got / 8; i++, at += PAGE) {
			if (entries[i] & ENTRY_USED)
				continue;
			found_range(look, used, at);
			used = at + PAGE;
		}
	}
	found_range(look, used, at);
	return at;
}

/* Look on from g->at, up to the last range.  Returns how many of the @pages are left. */
static uint64_t look_on(const struct look *look, uint64_t pages)
{
	struct given_back *g = look->g;
	size_t i;

	while (pages && (i = first_behind(g, g->at)) < g->nr) {
		struct given_range r = g->v[i];
		uint64_t start = r.start > g->at ? r.start : g->at, end = r.end;

		if ((end - start) / PAGE > pages)
			end = start + pages * PAGE;
		pages -= (end - start) / PAGE;
		g->at = look_at(look, start, end) < end ? r.end : end;
	}
	return pages;
}

bool given_back_look(struct given_back *g, const struct target *t, uint64_t pages,
		     void (*found)(void *arg, uint64_t addr, uint64_t size), void *arg)
{
	struct look look = {.g = g, .found = found, .arg = arg};
	uint64_t all = 0;

	if (!g->nr)
		return true;
	look.fd = target_open_file(t, HELPER_PAGEMAP);
	if (look.fd < 0)
		return false;
	for (size_t i = 0; i < g->nr; i++)
		all += (g->v[i].end - g->v[i].start) / PAGE;
	all = all < pages ? all : pages;
	pages -= all;
	all = look_on(&look, all);
	if (all) { /* those before */
		g->at = 0;
		look_on(&look, all);
	}
	close(look.fd);
	return pages > 0;
}

void given_back_release(struct given_back *g)
{
	free(g->v);
	g->v = NULL;
	g->nr = g->room = 0;
	g->at = 0;
}
