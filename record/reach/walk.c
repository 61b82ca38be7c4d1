/* walk.c - see walk.h */
#include "record/reach/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/trace.h"
#include "record/reach/frozen.h"
#include "record/reach/idle.h"
#include "record/reach/targets.h"
#include "record/target/pages.h"

#define PIECE (256u << 10) /* bytes that are read at once: they stay in the cache */

/* A walk under way. */
struct walker {
	struct reach_walk *walk;
	struct targets targets;
	struct pages pages;
	struct idle idle;  /* of which no word is given, */
	uint64_t base_end; /* nor of jemalloc's own memory, up to here */
	uint64_t piece[PIECE / 8];
	struct mlk_pointer words[MLK_MAX_POINTERS];
	size_t nr;
	size_t next_run; /* of what is frozen */
};

/* Is @m the beginning of a data segment that the loader made read-only (RELRO)? Its file is
 * writable right behind it. */
static bool is_relro(const struct mlk_mapping *m, const struct mlk_mapping *next)
{
	return m->perms == MLK_PERM_R && m->inode && next->start == m->end &&
	       next->inode == m->inode && next->perms & MLK_PERM_W &&
	       next->dev_major == m->dev_major && next->dev_minor == m->dev_minor;
}

/* Is @m ours, the preloaded library's: what it notes of blocks does not hold them? */
static bool is_recorders(const struct mlk_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name &&
	       (!strncmp(name, "/memfd:mleak", 12) || !strncmp(name, "/libmleak-preload.so", 20));
}

/* May a word of @m, which is readable, hold a block?  What is not writable now may have been: data
 * that was sealed, generated code. */
static bool may_hold(const struct mlk_mapping *m, const struct mlk_mapping *next)
{
	if (m->perms & MLK_PERM_W)
		return true;
	if (!m->inode)
		return m->path[0] != '[' || !strcmp(m->path, "[heap]");
	return next && is_relro(m, next);
}

int reach_ranges(const struct mlk_mapping *maps, size_t nr, struct mlk_range **ranges,
		 size_t *nr_ranges)
{
	struct mlk_range *v = calloc(nr + 1, sizeof(*v));

	*ranges = v;
	*nr_ranges = 0;
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct mlk_mapping *m = &maps[i];

		if (m->start >= TARGETS_TOP || !(m->perms & MLK_PERM_R) || is_recorders(m) ||
		    !may_hold(m, i + 1 < nr ? m + 1 : NULL))
			continue;
		v[(*nr_ranges)++] = (struct mlk_range){.start = m->start,
						       .end = m->end,
						       .perms = m->perms,
						       .offset = m->offset,
						       .path = m->path};
	}
	return 0;
}

static int give_words(struct walker *w)
{
	size_t nr = w->nr;

	w->nr = 0;
	w->walk->words += nr;
	return nr ? w->walk->sink(w->walk->arg, w->words, nr) : 0;
}

/* Look at @piece, the @len bytes that lie at @address.  Returns as the sink. */
static int take_words(struct walker *w, const uint64_t *piece, uint64_t address, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		if (!targets_hold(&w->targets, piece[i]))
			continue;
		w->words[w->nr++] = (struct mlk_pointer){address + i * 8, piece[i]};
		if (w->nr == MLK_MAX_POINTERS) {
			int err = give_words(w);

			if (err)
				return err;
		}
	}
	return 0;
}

/* The same, but of what is idle. */
static int take_busy(struct walker *w, const uint64_t *piece, uint64_t address, size_t len)
{
	const uint64_t end = address + len;
	uint64_t at = address;
	int err = 0;

	for (size_t i = 0; i < w->idle.nr && !err; i++) {
		const struct idle_area *a = &w->idle.v[i];

		if (a->end <= at || a->start >= end)
			continue;
		if (a->start > at)
			err = take_words(w, piece + (at - address) / 8, at, a->start - at);
		at = a->end < end ? a->end : end;
	}
	return err ? err : take_words(w, piece + (at - address) / 8, at, end - at);
}

/* The same, and jemalloc's own memory, which begins in it or before, is idle, too. */
static int take_piece(struct walker *w, const uint64_t *piece, uint64_t address, size_t len)
{
	const uint64_t end = address + len;
	uint64_t at = address;
	int err = 0;

	while (!err && at < end) {
		uint64_t next = (at + IDLE_BASE_ALIGN) & ~(uint64_t)(IDLE_BASE_ALIGN - 1);
		const uint64_t *words = piece + (at - address) / 8;

		if (next > end)
			next = end;
		if (at % IDLE_BASE_ALIGN == 0 && at >= w->base_end &&
		    end - at >= IDLE_BASE_WORDS * 8)
			w->base_end = at + idle_jemalloc_base(words, at);
		if (at < w->base_end) {
			if (next > w->base_end)
				next = w->base_end;
		} else {
			err = take_busy(w, words, at, next - at);
		}
		at = next;
	}
	return err;
}

/* Read [@from, @to), whose pages were there a moment ago.  Returns 0, or -errno to end it. */
static int read_run(struct walker *w, struct mlk_range *range, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t most = to - from < PIECE ? (size_t)(to - from) : PIECE;
		bool stop = w->walk->stop && *w->walk->stop;
		ssize_t got = stop ? 0 : pread(w->walk->mem, w->piece, most, (off_t)from);
		int err;

		if (!got)
			return stop ? -ECANCELED : -ESRCH;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 8) {
			/* gone, or of a device: the next page may be there */
			range->unread += PAGES_PAGE;
			from += PAGES_PAGE;
			continue;
		}
		got &= ~7l;
		err = take_piece(w, w->piece, from, (size_t)got);
		if (err)
			return err;
		from += (uint64_t)got;
	}
	return 0;
}

/* The same of what was copied while the process stood still. */
static int walk_frozen(struct walker *w, struct mlk_range *range)
{
	const struct frozen *f = w->walk->frozen;
	uint64_t seen = 0;
	int err = 0;

	range->unread = 0;
	for (; w->next_run < f->nr_runs && !err; w->next_run++) {
		const struct freeze_run *run = &f->runs[w->next_run];

		if (run->start >= range->end)
			break;
		seen += run->bytes;
		range->unread += run->unread;
		if (w->walk->stop && *w->walk->stop)
			return -ECANCELED;
		err = take_piece(w, frozen_words(f, run), run->start, run->bytes);
	}
	range->absent = range->end - range->start - seen;
	return err;
}

static int walk_range(struct walker *w, struct mlk_range *range)
{
	uint64_t from, to, seen = 0;
	int more, err;

	if (w->walk->frozen)
		return walk_frozen(w, range);
	range->absent = range->unread = 0;
	pages_begin(&w->pages, range->start);
	while ((more = pages_next(&w->pages, range->end, &from, &to)) > 0) {
		seen += to - from;
		err = read_run(w, range, from, to);
		if (err)
			return err;
	}
	range->absent = range->end - range->start - seen;
	return more;
}

/* What lies in pages that are not there is zero: to read it would make them. */
static int read_live(void *arg, uint64_t address, void *to, size_t bytes)
{
	const uint64_t end = address + bytes, mask = PAGES_PAGE - 1;
	struct walker *w = arg;
	uint64_t from, till;
	int more;

	if (address > INT64_MAX - bytes)
		return -1;
	memset(to, 0, bytes);
	pages_begin(&w->pages, address & ~mask);
	while ((more = pages_next(&w->pages, (end + mask) & ~mask, &from, &till)) > 0) {
		from = from < address ? address : from;
		till = till < end ? till : end;
		if (pread(w->walk->mem, (char *)to + (from - address), (size_t)(till - from),
			  (off_t)from) != (ssize_t)(till - from))
			return -1;
	}
	return more;
}

static int read_frozen(void *arg, uint64_t address, void *to, size_t bytes)
{
	const struct frozen *f = ((const struct walker *)arg)->walk->frozen;

	for (size_t i = 0; i < f->nr_runs; i++) {
		const struct freeze_run *run = &f->runs[i];

		if (address < run->start || address - run->start >= run->bytes)
			continue;
		if (run->bytes - (address - run->start) < bytes)
			break;
		memcpy(to, (const char *)frozen_words(f, run) + (address - run->start), bytes);
		return 0;
	}
	return -1;
}

static int find_idle(struct walker *w)
{
	const struct idle_memory memory = {w->walk->frozen ? read_frozen : read_live, w,
					   w->walk->ranges, w->walk->nr};

	return idle_find(&w->idle, &memory);
}

int reach_walk_run(struct reach_walk *walk)
{
	struct walker *w = calloc(1, sizeof(*w));
	int err = w ? targets_begin(&w->targets, walk->ranges, walk->nr) : -ENOMEM;

	walk->words = 0;
	if (!err) {
		w->walk = walk;
		w->pages.fd = walk->pagemap;
		err = find_idle(w);
		for (size_t i = 0; i < walk->nr && !err; i++)
			err = walk_range(w, &walk->ranges[i]);
		if (!err)
			err = give_words(w);
		targets_release(&w->targets);
		idle_release(&w->idle);
	}
	free(w);
	return err;
}
