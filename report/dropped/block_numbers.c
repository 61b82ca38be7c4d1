/* block_numbers.c - see block_numbers.h: the rules of live.c, by which the events will be replayed
 */
#include "report/dropped/block_numbers.h"

#include <errno.h>
#include <stdlib.h>

#include "format/summary.h"
#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/live/block_map.h"

#define MAX_OLDER  (2u << 20) /* no fewer than live.c waits for */
#define MAX_PLACES (1u << MLK_PLACE_BITS)
#define NO_PLACE   UINT32_MAX

/* Blocks that have all in common but their places. */
struct group {
	uint64_t size;
	uint32_t process, life, stack, flags;
	uint32_t func;
	uint32_t nr_places; /* that were ever used */
	uint32_t free;	    /* the place that was freed last, in the list of those; or NO_PLACE */
};

/* A place that is free, and the one that was freed before it. */
struct free_place {
	uint32_t place, next;
};

/* Blocks by their real addresses: addr is what the trace will have, stack and tid are the group and
 * the place if that is a number, and known says whether it is one.  Of pending ones size is the
 * real address, and part says whether they were live. */
struct numbered_process {
	uint32_t tgid;
	uint32_t life; /* programs and processes that had this number before */
	struct block_map blocks;
	struct block_map older;	   /* freed, but allocated before */
	struct block_map pending;  /* by thread: released, and not known yet whether for good */
	struct block_map released; /* those whose addresses were not allocated again, by address */
};

struct block_numbers {
	INTERN_OF(struct numbered_process) processes;
	INTERN_OF(struct group) groups;
	struct free_place *places; /* number 0 is none */
	size_t nr_places, places_room;
	uint32_t unused; /* of places: the list of those that are free themselves */
};

int block_numbers_new(struct block_numbers **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->unused = NO_PLACE;
	return 0;
}

static bool same_tgid(const void *things, uint32_t number, const void *key)
{
	return ((const struct block_numbers *)things)->processes.all[number].tgid ==
	       *(const uint32_t *)key;
}

static struct numbered_process *numbered_process(struct block_numbers *n, uint32_t tgid)
{
	const struct numbered_process process = {.tgid = tgid};
	struct hash_query query = {.things = n, .key = &tgid, .equal = same_tgid};
	uint32_t number;

	query.hash = hash_word(0, tgid);
	if (intern(&n->processes.table, &query, &process, sizeof(process), &number) < 0)
		return NULL;
	return &n->processes.all[number];
}

static bool same_group(const void *things, uint32_t number, const void *key)
{
	const struct group *x = &((const struct block_numbers *)things)->groups.all[number];
	const struct group *y = key;

	return x->size == y->size && x->process == y->process && x->life == y->life &&
	       x->stack == y->stack && x->flags == y->flags && x->func == y->func;
}

static int group_of(struct block_numbers *n, const struct numbered_process *process,
		    const struct mlk_event *event, uint32_t stack, uint32_t *number)
{
	const struct group group = {
		.size = event->size,
		.process = process->tgid,
		.life = process->life,
		.stack = stack,
		.flags = event->flags,
		.func = event->func,
		.free = NO_PLACE,
	};
	struct hash_query query = {.things = n, .key = &group, .equal = same_group};
	int added;

	query.hash = hash_word(hash_word(stack, event->size),
			       (uint64_t)process->tgid << 32 | process->life << 8 | event->func);
	added = intern(&n->groups.table, &query, &group, sizeof(group), number);
	return added < 0 ? added : 0;
}

/* Give @block the place of @group that was freed last, or a new one; none if all are taken. */
static void take_place(struct block_numbers *n, uint32_t group, struct live_block *block)
{
	struct group *of = &n->groups.all[group];
	uint32_t at = of->free;

	if (at == NO_PLACE && of->nr_places == MAX_PLACES)
		return;
	block->stack = group;
	block->known = true;
	if (at == NO_PLACE) {
		block->tid = of->nr_places++;
	} else {
		block->tid = n->places[at].place;
		of->free = n->places[at].next;
		n->places[at].next = n->unused;
		n->unused = at;
	}
	block->addr = mlk_block_number(group, block->tid);
}

/* The place of @block, which was freed, is free. */
static int free_place(struct block_numbers *n, const struct live_block *block)
{
	const struct free_place none = {0};
	uint32_t at = n->unused;
	struct group *of;
	int err;

	if (!block->known)
		return 0;
	of = &n->groups.all[block->stack];
	if (at == NO_PLACE) {
		at = (uint32_t)n->nr_places;
		err = array_append(&n->places, &n->nr_places, &n->places_room, &none, sizeof(none));
		if (err)
			return err;
	} else {
		n->unused = n->places[at].next;
	}
	n->places[at] = (struct free_place){block->tid, of->free};
	of->free = at;
	return 0;
}

/* All blocks of @process are gone: another program has its number, or another process. */
static void begin_life(struct numbered_process *process)
{
	process->life++;
	block_map_release(&process->blocks);
	block_map_release(&process->pending);
	block_map_release(&process->released);
}

/* A block from before was freed at @addr: what takes its place keeps that address. */
static int note_older(struct numbered_process *process, uint64_t addr)
{
	const struct live_block block = {.addr = addr};
	int err = 0;

	if (process->older.nr_blocks < MAX_OLDER)
		err = block_map_put(&process->older, addr, &block);
	return err == -EEXIST ? 0 : err;
}

/* What @tid released is free for good. */
static int settle(struct block_numbers *n, struct numbered_process *process, uint32_t tid)
{
	struct live_block block, released;
	bool unused;

	if (!block_map_take(&process->pending, tid, &block))
		return 0;
	unused = block_map_take(&process->released, block.size, &released);
	if (!block.part)
		return note_older(process, block.size);
	return unused ? free_place(n, &block) : 0; /* another block has its number */
}

static int number_alloc(struct block_numbers *n, struct numbered_process *process,
			struct mlk_event *event, uint32_t stack)
{
	struct live_block block = {.addr = event->addr}, old;
	const struct live_block *live = block_map_find(&process->blocks, event->addr);
	uint32_t group;
	int err;

	if (event->func == MLK_FUNC_MMAP || event->func == MLK_FUNC_MREMAP ||
	    event->func == MLK_FUNC_ALLOC_PAGES)
		return 0;
	if (live) { /* its free was lost: the replay must see that by its address */
		event->addr = live->addr;
		return 0;
	}
	if (block_map_take(&process->released, event->addr, &old)) {
		block = old; /* by another thread: the outcome of its realloc is told by this */
	} else if (!block_map_take(&process->older, event->addr, &old)) {
		err = group_of(n, process, event, stack, &group);
		if (err)
			return err;
		take_place(n, group, &block);
	}
	err = block_map_put(&process->blocks, event->addr, &block);
	event->addr = block.addr;
	return err;
}

static int number_free(struct block_numbers *n, struct numbered_process *process,
		       struct mlk_event *event)
{
	struct live_block block;

	if (block_map_take(&process->blocks, event->addr, &block)) {
		event->addr = block.addr;
		return free_place(n, &block);
	}
	return event->flags & MLK_EVENT_NESTED ? 0 : note_older(process, event->addr);
}

static int number_release(struct numbered_process *process, struct mlk_event *event)
{
	const uint64_t real = event->addr;
	struct live_block block = {.addr = real};
	bool found = block_map_take(&process->blocks, real, &block);
	int err;

	block.size = real;
	block.part = found;
	event->addr = block.addr;
	err = block_map_put(&process->released, real, &block);
	if (err == -EEXIST) /* a trace that contradicts itself */
		err = 0;
	return err ? err : block_map_put(&process->pending, event->tid, &block);
}

static int number_restore(struct block_numbers *n, struct numbered_process *process,
			  struct mlk_event *event)
{
	struct live_block block, released;
	int err;

	if (!block_map_take(&process->pending, event->tid, &block))
		return 0;
	if (block.size != event->addr) { /* of another call */
		err = block_map_put(&process->pending, event->tid, &block);
		return err ? err : settle(n, process, event->tid);
	}
	event->addr = block.addr;
	if (!block_map_take(&process->released, block.size, &released) || !block.part)
		return 0;
	err = block_map_put(&process->blocks, block.size, &block);
	return err == -EEXIST ? 0 : err;
}

int block_numbers_apply(struct block_numbers *n, struct mlk_event *event, uint32_t stack)
{
	struct numbered_process *process = numbered_process(n, event->tgid);
	int err = 0;

	if (!process)
		return -ENOMEM;
	if (event->kind != MLK_RESTORE && event->kind != MLK_PAGES &&
	    !(event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED))
		err = settle(n, process, event->tid);
	if (err)
		return err;
	switch (event->kind) {
	case MLK_ALLOC:
		return number_alloc(n, process, event, stack);
	case MLK_FREE:
		return number_free(n, process, event);
	case MLK_RELEASE:
		return number_release(process, event);
	case MLK_RESTORE:
		return number_restore(n, process, event);
	case MLK_EXEC:
	case MLK_EXIT:
		block_map_release(&process->older);
		begin_life(process);
		return 0;
	case MLK_FORK: /* of a process that the trace knew already, perhaps, which goes on then */
		begin_life(process);
		return 0;
	default:
		return 0;
	}
}

void block_numbers_free(struct block_numbers *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->processes.nr; i++) {
		begin_life(&n->processes.all[i]);
		block_map_release(&n->processes.all[i].older);
	}
	intern_release(&n->processes.table);
	intern_release(&n->groups.table);
	free(n->places);
	free(n);
}
