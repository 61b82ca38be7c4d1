/* reach_pass.h - what one pass through a process's memory says of its blocks */
#ifndef REPORT_REACH_PASS_H
#define REPORT_REACH_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"
#include "report/base/prefetch.h"
#include "report/reach/graph/block_index.h"

/* Blocks of a process, at most: the bit above their numbers is used. */
#define REACH_MOST_BLOCKS (UINT32_MAX / 2 - 1)

/* How well a block can be reached, ascending. */
enum reach_class {
	REACH_LOST,	/* no word points to it but from lost blocks */
	REACH_STALE,	/* only words do that nothing reads any more */
	REACH_POSSIBLE, /* by way of a word that points into a block and not to its beginning */
	REACH_STACK,	/* from a root by words that point to beginnings, but from stacks and
			   registers alone; it is REACH_HELD where nobody asks which root */
	REACH_HELD,	/* also from other roots */
	REACH_CLASSES
};

/* Memory that is no block: [start, end). */
struct reach_area {
	uint64_t start, end;
};

/* What a root is: a word of memory, all registers of a thread, or what the kernel keeps. */
enum reach_root { REACH_ROOT_WORD, REACH_ROOT_THREAD, REACH_ROOT_GIVEN };

/* Who numbers roots, where it is asked which of them hold a block. */
struct reach_roots {
	/* The number of the root of @kind at @where: an address, or the thread's or given root's
	 * place in the pass.  @stale: nothing reads it any more.  Below REACH_INTERIOR. */
	uint32_t (*number)(void *arg, enum reach_root kind, uint64_t where, bool stale);
	/* Is the root with this number a stack, or registers? */
	bool (*is_stack)(const void *arg, uint32_t root);
	void *arg;
};

#define REACH_INTERIOR (UINT32_C(1) << 31) /* of a block's number: not to its beginning */

/* A root's word and the block that it points to, which may have REACH_INTERIOR. */
struct reach_word {
	uint32_t to, root;
};

/* Who points to whom.  The words of block i point to to[first[i]] up to to[first[i + 1] - 1], which
 * may have REACH_INTERIOR. */
struct reach_graph {
	uint32_t *first, *to;
	size_t nr, nr_to, room_to; /* blocks, words */
	struct reach_word *roots, *stale;
	size_t nr_roots, room_roots, nr_stale, room_stale;
};

/* A walk comes to queue[at] of @nr blocks: bring near what it needs for those that follow, and what
 * it keeps of blocks in @kept, @size bytes each. */
static inline void reach_graph_expect(const struct reach_graph *g, const uint32_t *queue, size_t at,
				      size_t nr, const void *kept, size_t size)
{
	enum { FIRST = 24, WORDS = 12, BLOCKS = 4, MOST = 32 };

	if (at + FIRST < nr)
		prefetch(&g->first[queue[at + FIRST]]);
	if (at + WORDS < nr)
		prefetch(&g->to[g->first[queue[at + WORDS]]]);
	if (at + BLOCKS < nr) {
		const uint32_t *first = &g->first[queue[at + BLOCKS]];

		for (uint32_t e = first[0]; e < first[1] && e - first[0] < MOST; e++)
			prefetch((const char *)kept + size * (g->to[e] & ~REACH_INTERIOR));
	}
}

/* What is known before the words are read; all is borrowed. */
struct reach_world {
	const struct block_index *index;
	const struct reach_area *freed; /* ascending, not overlapping: its words are stale */
	size_t nr_freed;
	const struct reach_area *arenas; /* the same: where an allocator has its lists */
	size_t nr_arenas;
	const struct reach_area *chosen; /* the same: its words hold what they point to */
	size_t nr_chosen;
	bool starts_only;		 /* a word that points into a block does not reach it */
	uint64_t tag_mask;		 /* bits of a word that are no part of its address */
	const struct reach_roots *roots; /* NULL: nobody asks which */
};

struct reach_pass; /* opaque */

/* Begin a pass; @pass, whose lists are borrowed, tells of threads and ranges.  On failure *@out is
 * NULL.  Returns 0 or -ENOMEM. */
int reach_pass_new(struct reach_pass **out, const struct reach_world *world,
		   const struct mlk_pass *pass);

/* Set to[i] to the block that words[i] points to, of @nr, with REACH_INTERIOR unless it is to its
 * beginning; BLOCK_INDEX_NONE: to none.  For any thread. */
void reach_world_find(const struct reach_world *world, const struct mlk_pointer *words, size_t nr,
		      uint32_t *to);

/* Take in its words, and what they point to, as it was found.  Returns 0, -ENOMEM, or -EINVAL: they
 * do not ascend. */
int reach_pass_words(struct reach_pass *p, const struct mlk_pointer *words, const uint32_t *to,
		     size_t nr);

/* All words are in: raise classes[i] of each block to what this pass says, if that is more;
 * REACH_STACK counts as REACH_HELD.  Returns 0 or -ENOMEM. */
int reach_pass_judge(struct reach_pass *p, uint8_t *classes);

/* After that: what this pass said of each block, and the graph, in which the caller may change what
 * it likes.  Valid until the pass is forgotten. */
const uint8_t *reach_pass_classes(const struct reach_pass *p);
struct reach_graph *reach_pass_graph(struct reach_pass *p);

/* Does a word that points into a block not reach it? */
bool reach_pass_starts_only(const struct reach_pass *p);

/* After that: pointed[i] becomes true of each block of class REACH_LOST to which a word of another
 * one points. */
void reach_pass_lost_with(const struct reach_pass *p, const uint8_t *classes, bool *pointed);

/* Forget it; NULL is allowed. */
void reach_pass_free(struct reach_pass *p);

#endif
