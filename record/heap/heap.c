/* heap.c - see heap.h */
#include "record/heap/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/base/clock.h"
#include "record/heap/glibc.h"

#define LOOKS	 5	  /* at free blocks, */
#define APART_NS 1000000u /* so far apart */

#define MOST_DATA (UINT64_C(16) << 20) /* of a mapping, in which arenas are looked for */

struct heap {
	struct glibc glibc;
	bool searched, known; /* the allocator was looked for, and found */
	char name[32];
	unsigned int walks;
	uint64_t begin_ns, end_ns;
	struct heap_list first, last; /* of the first walk, of the last one */
	struct heap_list free;	      /* at any time in between */
	struct heap_list caches;      /* of threads */
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

/* Look for glibc's malloc in the data of the file that mapping @i is the first one of. */
static bool find_in(struct heap *h, const struct maps *maps, size_t i)
{
	const struct mlk_mapping *m = &maps->v[i];
	bool found = false;
	uint64_t end = m->end;

	for (; i < maps->nr && !found; i++) {
		const struct mlk_mapping *at = &maps->v[i];

		/* what is zero at first is in memory behind the file's */
		if (at->inode ? !maps_same_file(at, m) : at->start != end || at->path[0])
			break;
		end = at->end;
		if (at->perms & MLK_PERM_W)
			found = glibc_find_main(
				&h->glibc, &h->memory, at->start,
				end - at->start < MOST_DATA ? end : at->start + MOST_DATA);
	}
	return found && h->glibc.main_arena && find_version(h, maps, m);
}

/* In the C library, or in a program that was linked with it. */
static void find_glibc(struct heap *h, const struct maps *maps)
{
	const struct mlk_mapping *of = NULL;

	for (size_t i = 0; i < maps->nr && !h->known; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (!m->inode || (of && maps_same_file(of, m)))
			continue;
		if (of && !is_libc(m->path))
			continue;
		of = m;
		h->known = find_in(h, maps, i);
		if (!h->known)
			glibc_release(&h->glibc);
	}
	if (h->known && h->glibc.minor == GLIBC_UNKNOWN)
		snprintf(h->name, sizeof(h->name), "glibc");
	else if (h->known)
		snprintf(h->name, sizeof(h->name), "glibc 2.%d", h->glibc.minor);
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

int heap_walk(struct heap *h, const struct heap_place *place)
{
	struct heap_list *list = h->walks ? &h->last : &h->first;
	int err;

	set_place(h, place);
	if (!h->searched) {
		h->begin_ns = clock_now_ns();
		find_glibc(h, place->maps);
		h->searched = true;
	}
	h->walks++;
	err = h->known ? glibc_walk(&h->glibc, &h->memory, list) : 0;
	if (!err)
		err = keep_caches(h, list);
	h->end_ns = clock_now_ns();
	return err;
}

int heap_look_at_free(struct heap *h, const struct heap_place *place)
{
	const struct timespec apart = {.tv_nsec = APART_NS};
	int err = 0;

	set_place(h, place);
	for (int i = 0; h->known && i < LOOKS && !err; i++) {
		err = heap_memory_stopped(&h->memory)
			      ? -ECANCELED
			      : glibc_look_at_free(&h->glibc, &h->memory, &h->caches, &h->free);
		nanosleep(&apart, NULL);
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

int heap_result(struct heap *h, const struct maps *maps, struct mlk_heap *heap,
		struct mlk_heap_block **blocks, size_t *nr)
{
	struct mlk_heap_block *v = calloc(h->last.nr + 1, sizeof(*v));
	size_t next = 0;

	*blocks = v;
	*nr = h->last.nr;
	if (!v)
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
				  .unwalked = h->glibc.unwalked,
				  .arenas = h->glibc.arenas,
				  .nr_arenas = h->known ? h->glibc.nr_arenas : 0};
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
	free(h);
}
