/* heap.c - see heap.h */
#include "record/heap/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/base/clock.h"
#include "record/heap/glibc.h"
#include "record/heap/jemalloc.h"
#include "record/heap/tcmalloc.h"

#define LOOKS	 5	  /* at free blocks, */
#define APART_NS 1000000u /* so far apart */

#define MOST_DATA (UINT64_C(16) << 20) /* of a mapping, in which arenas are looked for */

struct heap {
	struct glibc glibc;
	struct jemalloc jemalloc;
	struct tcmalloc tcmalloc;
	bool searched;				    /* allocators were looked for, */
	bool has_glibc, has_jemalloc, has_tcmalloc; /* and found */
	char name[64];
	unsigned int walks;
	uint64_t begin_ns, end_ns;
	struct heap_list first, last; /* of the first walk, of the last one */
	struct heap_list free;	      /* at any time in between */
	struct heap_list caches;      /* of threads, glibc's */
	struct heap_list others;      /* of the last walk, of one of the others */
	struct mlk_heap_arena *arenas;
	struct heap_memory memory;
};

int heap_begin(struct heap **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void set_place(struct heap *h, const struct heap_place *place)
{
	h->memory.mem = place->mem;
	h->memory.pagemap = place->pagemap;
	h->memory.ranges = place->ranges;
	h->memory.nr = place->nr;
	h->memory.brk_end = 0;
	for (size_t i = 0; i < place->nr; i++)
		if (!strcmp(place->ranges[i].path, "[heap]"))
			h->memory.brk_end = place->ranges[i].end;
	h->memory.stop = place->stop;
	heap_memory_forget(&h->memory);
}

/* Is @path a C library's, by the name of its file? */
static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (!strncmp(name, "/libc.so", 8) || !strncmp(name, "/libc-2.", 8));
}

/* Is the C library in the file that @m is of one that is known? Of one that a program was linked
 * with, the version is not told anywhere. */
static bool find_version(struct heap *h, const struct maps *maps, const struct mlk_mapping *m)
{
	bool found = false;

	for (size_t i = 0; i < maps->nr && !found; i++)
		if (maps->v[i].perms & MLK_PERM_R && maps->v[i].inode &&
		    maps_same_file(&maps->v[i], m) &&
		    glibc_find_version(&h->glibc, &h->memory, maps->v[i].start, maps->v[i].end))
			found = true;
	return glibc_knows_version(&h->glibc) && (found || !is_libc(m->path));
}

/* The writable data of the file that mapping @i is the first one of, from mapping *@at on: what is
 * zero at first is in memory behind the file's.  Returns whether there is more; *@at is the mapping
 * behind, and what was found [*@start, *@end). */
static bool next_data(const struct maps *maps, size_t i, size_t *at, uint64_t *start, uint64_t *end)
{
	const struct mlk_mapping *file = &maps->v[i];

	for (; *at < maps->nr; (*at)++) {
		const struct mlk_mapping *m = &maps->v[*at];
		const bool follows = *at > i && m->start == maps->v[*at - 1].end && !m->path[0];

		if (m->inode ? !maps_same_file(m, file) : !follows)
			return false;
		if (!(m->perms & MLK_PERM_W))
			continue;
		*start = m->start;
		*end = m->end;
		(*at)++;
		return true;
	}
	return false;
}

static uint64_t cut_data(uint64_t start, uint64_t end)
{
	return end - start < MOST_DATA ? end : start + MOST_DATA;
}

/* Look for glibc's malloc in the data of the file that mapping @i is the first one of. */
static bool find_in(struct heap *h, const struct maps *maps, size_t i)
{
	bool found = false;
	uint64_t start, end;
	size_t at = i;

	while (!found && next_data(maps, i, &at, &start, &end))
		found = glibc_find_main(&h->glibc, &h->memory, start, cut_data(start, end));
	return found && h->glibc.main_arena && find_version(h, maps, &maps->v[i]);
}

/* In the C library, or in a program that was linked with it. */
static void find_glibc(struct heap *h, const struct maps *maps)
{
	const struct mlk_mapping *of = NULL;

	for (size_t i = 0; i < maps->nr && !h->has_glibc; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (!m->inode || (of && maps_same_file(of, m)))
			continue;
		if (of && !is_libc(m->path))
			continue;
		of = m;
		h->has_glibc = find_in(h, maps, i);
		if (!h->has_glibc)
			glibc_release(&h->glibc);
	}
}

/* Look for what is not found yet in [@from, @to). */
static int find_others_in(struct heap *h, uint64_t from, uint64_t to)
{
	int found = 0;

	if (!h->has_jemalloc) {
		found = jemalloc_find(&h->jemalloc, &h->memory, from, to);
		h->has_jemalloc = found > 0;
		if (found <= 0)
			jemalloc_release(&h->jemalloc);
	}
	if (!h->has_tcmalloc && !found) {
		found = tcmalloc_find(&h->tcmalloc, &h->memory, from, to);
		h->has_tcmalloc = found > 0;
		if (found <= 0)
			tcmalloc_release(&h->tcmalloc);
	}
	return found < 0 ? found : 0;
}

/* In any file: its data are searched as one piece, as they follow each other. */
static int find_others(struct heap *h, const struct maps *maps)
{
	int err = 0;

	for (size_t i = 0; i < maps->nr && !err; i++) {
		uint64_t start, end, first = 0, last = 0;
		size_t at = i;

		if (!maps->v[i].inode || (i && maps_same_file(&maps->v[i - 1], &maps->v[i])))
			continue;
		while (next_data(maps, i, &at, &start, &end)) {
			first = first ? first : start;
			last = end;
		}
		if (first)
			err = find_others_in(h, first, cut_data(first, last));
	}
	return err;
}

static void set_name(struct heap *h)
{
	char glibc[16] = "glibc";
	const struct {
		bool has;
		const char *name;
	} all[] = {{h->has_glibc, glibc},
		   {h->has_jemalloc, "jemalloc 5.3"},
		   {h->has_tcmalloc, "tcmalloc"}};
	size_t len = 0;

	if (h->glibc.minor != GLIBC_UNKNOWN)
		snprintf(glibc, sizeof(glibc), "glibc 2.%d", h->glibc.minor);
	h->name[0] = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].has)
			len += (size_t)snprintf(h->name + len, sizeof(h->name) - len, "%s%s",
						len ? " and " : "", all[i].name);
}

/* Blocks of @list that are threads' caches. */
static int keep_caches(struct heap *h, struct heap_list *list)
{
	int err = 0;

	h->caches.nr = 0;
	for (size_t i = 0; i < list->nr && !err; i++)
		if (list->v[i].state == MLK_HEAP_OWN)
			err = heap_list_add(&h->caches, &list->v[i]);
	/* of an unknown version they tell that all is where it is looked for */
	for (size_t i = 0; i < list->nr; i++)
		if (h->glibc.minor == GLIBC_UNKNOWN && !h->caches.nr &&
		    list->v[i].state == MLK_HEAP_USED)
			list->v[i].state = MLK_HEAP_CHANGED;
	return err;
}

/* Walk through glibc's memory, if it is there. */
static int walk_glibc(struct heap *h, struct heap_list *list)
{
	int err;

	list->nr = 0;
	if (!h->has_glibc)
		return 0;
	err = glibc_walk(&h->glibc, &h->memory, list);
	return err ? err : keep_caches(h, list);
}

/* Add the blocks of another one to @list. */
static int add_others(struct heap *h, struct heap_list *list)
{
	int err = 0;

	for (size_t i = 0; i < h->others.nr && !err; i++)
		err = heap_list_add(list, &h->others.v[i]);
	h->others.nr = 0;
	return err;
}

/* The same of jemalloc's and tcmalloc's.  Their blocks are added to @list. */
static int walk_others(struct heap *h, struct heap_list *list)
{
	int err = h->has_jemalloc ? jemalloc_walk(&h->jemalloc, &h->memory, &h->others) : 0;

	if (h->has_jemalloc && h->jemalloc.strange) {
		h->has_jemalloc = false;
		h->others.nr = 0;
	}
	if (!err)
		err = add_others(h, list);
	if (!err && h->has_tcmalloc)
		err = tcmalloc_walk(&h->tcmalloc, &h->memory, &h->others);
	if (!err)
		err = add_others(h, list);
	if ((h->has_jemalloc || h->has_tcmalloc) && !err)
		heap_list_sort(list);
	return err;
}

int heap_walk(struct heap *h, const struct heap_place *place)
{
	struct heap_list *list = h->walks ? &h->last : &h->first;
	int err = 0;

	set_place(h, place);
	if (!h->searched) {
		h->begin_ns = clock_now_ns();
		find_glibc(h, place->maps);
		err = find_others(h, place->maps);
		h->searched = true;
	}
	h->walks++;
	if (!err)
		err = walk_glibc(h, list);
	if (!err)
		err = walk_others(h, list);
	set_name(h);
	h->end_ns = clock_now_ns();
	return err;
}

static int look_at_free(struct heap *h)
{
	int err = heap_memory_stopped(&h->memory) ? -ECANCELED : 0;

	if (!err && h->has_glibc)
		err = glibc_look_at_free(&h->glibc, &h->memory, &h->caches, &h->free);
	if (!err && h->has_jemalloc)
		err = jemalloc_look_at_free(&h->jemalloc, &h->memory, &h->free);
	if (!err && h->has_tcmalloc)
		err = tcmalloc_look_at_free(&h->tcmalloc, &h->memory, &h->free);
	return err;
}

int heap_look_at_free(struct heap *h, const struct heap_place *place)
{
	const struct timespec apart = {.tv_nsec = APART_NS};
	const bool any = h->has_glibc || h->has_jemalloc || h->has_tcmalloc;
	int err = 0;

	set_place(h, place);
	for (int i = 0; any && i < LOOKS && !err; i++) {
		uint64_t begin_ns;

		err = look_at_free(h);
		begin_ns = clock_now_ns();
		nanosleep(&apart, NULL);
		if (place->slept_ns)
			*place->slept_ns += clock_now_ns() - begin_ns;
	}
	return err;
}

static bool is_free(const struct heap_block *block)
{
	return block->state >= MLK_HEAP_CACHED && block->state <= MLK_HEAP_TOP;
}

/* Compare @block, of the last walk, with what the first walk, whose blocks up to *@next lie before
 * it, found there. */
static uint8_t compare(const struct heap *h, const struct heap_block *block, size_t *next)
{
	const struct heap_list *first = &h->first;
	const struct heap_block *was;
	const uint64_t end = block->address + block->size;

	while (*next < first->nr &&
	       first->v[*next].address + first->v[*next].size <= block->address)
		(*next)++;
	was = *next < first->nr ? &first->v[*next] : NULL;
	if (block->state == MLK_HEAP_USED)
		return was && was->address == block->address && was->size == block->size &&
				       was->sum == block->sum && was->state == MLK_HEAP_USED
			       ? MLK_HEAP_USED
			       : MLK_HEAP_CHANGED;
	/* words of what was in use before may have been in use at the passes */
	for (size_t i = *next; is_free(block) && i < first->nr && first->v[i].address < end; i++)
		if (!is_free(&first->v[i]))
			return MLK_HEAP_CHANGED;
	return block->state;
}

/* What was free in between was not in use all the time. */
static void drop_freed(struct heap *h)
{
	size_t next = 0;

	heap_list_sort(&h->free);
	for (size_t i = 0; i < h->last.nr; i++) {
		struct heap_block *block = &h->last.v[i];
		const struct heap_list *free = &h->free;

		while (next < free->nr &&
		       free->v[next].address + free->v[next].size <= block->address)
			next++;
		if (block->state == MLK_HEAP_USED && next < free->nr &&
		    free->v[next].address < block->address + block->size)
			block->state = MLK_HEAP_CHANGED;
	}
}

/* The first word of @block is kept if it tells of a file: maybe it is the address of a table of
 * functions. */
static uint64_t first_word(const struct heap_block *block, const struct maps *maps)
{
	const struct mlk_mapping *m = is_free(block) ? NULL : maps_find(maps, block->words[0]);

	return m && m->inode ? block->words[0] : 0;
}

/* Add @nr of them behind the *@has that h->arenas has, as far as there is room. */
static void copy_arenas(struct heap *h, size_t *has, const struct mlk_heap_arena *v, size_t nr)
{
	nr = nr < MLK_MAX_HEAP_ARENAS - *has ? nr : MLK_MAX_HEAP_ARENAS - *has;
	if (nr)
		memcpy(h->arenas + *has, v, nr * sizeof(*v));
	*has += nr;
}

/* Where words hold no block, of all allocators.  Returns how many, or -ENOMEM. */
static ssize_t gather_arenas(struct heap *h)
{
	const size_t nr_glibc = h->has_glibc ? h->glibc.nr_arenas : 0;
	const size_t nr_jemalloc = h->has_jemalloc ? h->jemalloc.nr_own : 0;
	const size_t nr_tcmalloc = h->has_tcmalloc ? h->tcmalloc.nr_own : 0;
	size_t nr = 0;

	free(h->arenas);
	h->arenas = calloc(nr_glibc + nr_jemalloc + nr_tcmalloc + 1, sizeof(*h->arenas));
	if (!h->arenas)
		return -ENOMEM;
	copy_arenas(h, &nr, h->glibc.arenas, nr_glibc);
	copy_arenas(h, &nr, h->jemalloc.own, nr_jemalloc);
	copy_arenas(h, &nr, h->tcmalloc.own, nr_tcmalloc);
	return (ssize_t)nr;
}

int heap_result(struct heap *h, const struct maps *maps, struct mlk_heap *heap,
		struct mlk_heap_block **blocks, size_t *nr)
{
	struct mlk_heap_block *v = calloc(h->last.nr + 1, sizeof(*v));
	ssize_t nr_arenas = gather_arenas(h);
	size_t next = 0;

	*blocks = v;
	*nr = h->last.nr;
	if (!v || nr_arenas < 0)
		return -ENOMEM;
	for (size_t i = 0; i < h->last.nr; i++)
		h->last.v[i].state = compare(h, &h->last.v[i], &next);
	drop_freed(h);
	for (size_t i = 0; i < h->last.nr; i++) {
		const struct heap_block *b = &h->last.v[i];

		v[i] = (struct mlk_heap_block){b->address, b->size, first_word(b, maps), b->state};
	}
	*heap = (struct mlk_heap){.allocator = h->name,
				  .begin_ns = h->begin_ns,
				  .end_ns = h->end_ns,
				  .unwalked = h->glibc.unwalked + h->jemalloc.unwalked +
					      h->tcmalloc.unwalked,
				  .arenas = h->arenas,
				  .nr_arenas = (size_t)nr_arenas};
	return 0;
}

void heap_end(struct heap *h)
{
	if (!h)
		return;
	glibc_release(&h->glibc);
	heap_list_release(&h->first);
	heap_list_release(&h->last);
	heap_list_release(&h->free);
	heap_list_release(&h->caches);
	heap_list_release(&h->others);
	jemalloc_release(&h->jemalloc);
	tcmalloc_release(&h->tcmalloc);
	free(h->arenas);
	free(h);
}
