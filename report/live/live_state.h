/* live_state.h - what live.c and its parts share: the blocks of all processes, and their sums */
#ifndef REPORT_LIVE_STATE_H
#define REPORT_LIVE_STATE_H

#include "report/base/hash_index.h"
#include "report/live/block_map.h"
#include "report/live/freed_set.h"
#include "report/live/live.h"
#include "report/live/sampling.h"

/* Blocks of mmap by the addresses they cover, which do not overlap, in range_map.c. */

struct range_node;

/* All zero is an empty map. */
struct range_map {
	struct range_node *root;
};

/* First address behind @block. */
uint64_t range_end(const struct live_block *block);

/* Put a copy of @block in; it overlaps none that is there.  Returns 0 or -ENOMEM. */
int range_map_put(struct range_map *map, const struct live_block *block);

/* Take a block that overlaps [@start, @end), the last of them, out into *@block.  False: none does.
 */
bool range_map_take(struct range_map *map, uint64_t start, uint64_t end, struct live_block *block);

/* The first block at or behind @addr, valid until the map is changed, or NULL. */
const struct live_block *range_map_from(const struct range_map *map, uint64_t addr);

/* The last block that overlaps [@start, @end), valid until the map is changed, or NULL. */
const struct live_block *range_map_last(const struct range_map *map, uint64_t start, uint64_t end);

/* Release what @map holds and leave it empty. */
void range_map_release(struct range_map *map);

/* What a thread allocated last, and did not free an older block after; stack and tid 0 of none. */
struct last_given {
	uint64_t size;
	uint32_t tid, stack;
};

#define LIVE_LAST_GIVEN 16 /* threads of a process, by their number's remainder */

/* Each process has maps of its own: an exec gives them back whole, and costs no more than it took
 * to fill them, however many blocks other processes have. */
struct process {
	uint32_t tgid;
	struct block_map blocks;  /* by address */
	struct range_map ranges;  /* allocated by mmap */
	struct block_map pending; /* released, but not finally: by live_pending_key() */
	struct block_map older;	  /* by address: freed, but allocated before the recording */
	struct freed_set freed;	  /* where its blocks were freed, if it is kept */
	struct last_given given[LIVE_LAST_GIVEN]; /* since the first of these was freed */
	uint32_t newest;   /* of the first with its tgid: number of the last with it */
	uint32_t parent;   /* 0: none is known */
	bool inherits;	   /* it may free blocks of its parent's: forked, and no exec yet */
	bool exited;	   /* its number is free for another */
	bool execed;	   /* it began another program */
	bool frees_older;  /* older has or had something */
	bool forgotten;	   /* its number may be given to another */
	uint64_t ended_as; /* so many had ended then, from 1 on; 0: it goes on */
	uint64_t ended_ns;
	struct live_totals totals; /* of it alone, as soon as there are several processes */
};

/* All of a trace. */
struct live {
	/* in the order of their first event; those with an index are the first with each tgid */
	INTERN_OF(struct process);
	size_t last; /* the one of the last event: often that of the next, too */
	uint64_t nr_begun, nr_ended, nr_forgotten; /* processes */
	uint32_t *unused;			   /* numbers of those that were forgotten */
	size_t nr_unused, unused_room;
	struct live_totals totals;
	struct live_watch watch;
	const struct mlk_event *event; /* that is being taken in, for the watch */
	struct sampling sampling;
	bool may_have_older; /* and so freed blocks are kept in mind */
};

/* Is thing @number of the live @things of the process *@key, a uint32_t? */
static inline bool live_same_process(const void *things, uint32_t number, const void *key)
{
	return ((const struct live *)things)->all[number].tgid == *(const uint32_t *)key;
}

/* All that @process has is gone, as with an exec.  Returns 0 or -ENOMEM. */
int live_lose_all(struct live *live, struct process *process);

/* What came to the sums since @before is due to @process. */
void live_account(struct live *live, struct process *process, const struct live_totals *before);

/* Of what thread @tid has released and may get back: one block; or, of a range that it unmapped,
 * first the range (an empty block of mmap at its address), then the @n-th block that was there. */
static inline uint64_t live_pending_key(uint32_t tid, uint32_t n)
{
	return (uint64_t)n << 32 | tid;
}

/* As live_each(), of one process, and with pieces of mappings that are not in use. */
void live_each_of(const struct process *process,
		  void (*visit)(void *arg, const struct live_block *block), void *arg);

/* Add @block, or what it represents, to a sum, and tell the watch. */
void live_add(struct live *live, enum live_sum sum, const struct live_block *block);

/* @block is allocated: it counts as allocated and as outstanding. */
void live_give(struct live *live, const struct live_block *block);

/* @block, which is outstanding, is freed. */
void live_free_block(struct live *live, const struct live_block *block);

/* Take it from one. */
void live_subtract(struct live *live, enum live_sum sum, const struct live_block *block);

/* One more block of those that @block represents, whose bytes were counted before. */
void live_add_block(struct live *live, enum live_sum sum, const struct live_block *block);

/* Only the bytes if @block is a piece: the rest lives on, or is counted elsewhere. */
void live_add_part(struct live *live, enum live_sum sum, const struct live_block *block);

/* The release of @block, of @process, is final. */
void live_count_free(struct live *live, struct process *process, const struct live_block *block);

/* A block of @process that was not alive is freed at @addr by thread @tid: from before the
 * recording, unless it was freed since, or the process is a copy. */
void live_count_older(struct live *live, struct process *process, uint64_t addr, uint32_t tid);

/* A block of @process was freed at @addr: another free of it is none of an older block. */
static inline void live_note_freed(const struct live *live, struct process *process, uint64_t addr)
{
	if (live->may_have_older)
		freed_set_add(&process->freed, addr);
}

/* @block of @process was allocated.  Where an older block was freed, its size is known by that. */
void live_size_older(struct live *live, struct process *process, const struct live_block *block);

/* The thread of @event went on: its realloc, if it was in one, has succeeded. */
void live_settle(struct live *live, struct process *process, const struct mlk_event *event);

/* Blocks of mmap, in live_ranges.c.  Each returns 0 or -ENOMEM. */

/* @block was allocated: what it covers of others is gone. */
int live_on_map(struct live *live, struct process *process, struct live_block *block);

/* @event unmaps a range, of as many blocks as it covers. */
int live_on_unmap(struct live *live, struct process *process, const struct mlk_event *event);

/* Where the pages of the range of @event end. */
uint64_t live_end_of_pages(const struct mlk_event *event);

/* Cut [@start, @end) out of a block of mmap.  Returns 1 with what was cut out in *@cut, 0 when none
 * is left that overlaps, or -ENOMEM. */
int live_cut_range(struct live *live, struct process *process, uint64_t start, uint64_t end,
		   struct live_block *cut);

/* Put back what lies of @block in [@start, @end). */
int live_put_piece(struct live *live, struct process *process, const struct live_block *block,
		   uint64_t start, uint64_t end);

/* @event says whether pages of mappings need memory; in live_pages.c. */
int live_on_pages(struct live *live, struct process *process, const struct mlk_event *event);

/* @piece of a mapping, in whatever use, begins to be there. */
void live_add_piece(struct live *live, const struct live_block *piece);

/* It is there no more. */
void live_subtract_piece(struct live *live, const struct live_block *piece);

/* The range that thread @tid unmapped last, which is taken from those pending, is mapped after all:
 * mremap did not move it. */
int live_put_back(struct live *live, struct process *process, uint32_t tid);

#endif
