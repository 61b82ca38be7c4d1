/* verdicts.h - which outstanding blocks are lost, which are held: from the pointers in a trace
 *
 * A block is judged if it lived from the beginning of the first pass to the end of the last one.
 * It has the best class that any of the passes gives it: a pointer that moved meanwhile was missed
 * by some of them, not by all.
 */
#ifndef REPORT_VERDICTS_H
#define REPORT_VERDICTS_H

#include "format/reader.h"
#include "report/live/live.h"
#include "report/live/root_choice.h"

/* What became of a block. */
enum block_verdict {
	VERDICT_NONE,	   /* it was not judged */
	VERDICT_LOST,	   /* no word points to it */
	VERDICT_LOST_WITH, /* only words in lost blocks do */
	VERDICT_STALE,	   /* only words do that nothing reads any more */
	VERDICT_POSSIBLE,  /* by way of a word that points into a block, not to its beginning */
	VERDICT_HELD,
	VERDICT_NR,
};

/* How to judge. */
struct verdict_rules {
	bool starts_only; /* a word that points into a block does not hold it */
	uint64_t tag_mask;
	uint64_t stop_ns;	   /* the last snapshot that ended before, CLOCK_MONOTONIC */
	struct root_choice *roots; /* what they point to is held; which of them are there is set */
	size_t nr_roots;
	bool holders; /* find out who holds what, too */
};

/* Why there are no verdicts. */
enum verdict_lack {
	VERDICT_LACKS_NOTHING,
	VERDICT_LACKS_POINTERS, /* the trace has none */
	VERDICT_LACKS_TIME,	/* the first pass ended after stop_ns */
	VERDICT_LACKS_END,	/* no pass came to its end: the process ended meanwhile */
	VERDICT_LACKS_WHOLE,	/* no pass is whole: the trace is damaged */
};

/* What was judged of a process. */
struct verdict_process {
	uint32_t tgid;
	uint32_t snapshot;
	unsigned int passes;
	uint32_t last;		   /* number of the last of them that is whole */
	bool settled;		   /* the last pass changed nothing, or nothing ran meanwhile */
	bool stopped;		   /* nothing ran in the last pass */
	uint64_t changed;	   /* blocks that seemed lost before the last pass, and were not */
	uint64_t begin_ns, end_ns; /* of the snapshot */
	uint64_t words, read_bytes, unread_bytes; /* of the last pass */
	unsigned int unknown_threads;	     /* whose registers and stack pointer were not known */
	struct live_amount sums[VERDICT_NR]; /* of the blocks that lived at the end of it */
	/* The same of blocks whose allocation is not in the trace, if the allocator was walked
	 * through. */
	bool walked;
	char allocator[64]; /* its name; "": it is not known, and there are none */
	uint64_t unwalked;  /* bytes of its memory */
	struct live_amount older[VERDICT_NR];
};

struct verdicts; /* opaque */

/*
 * Judge by the last snapshot of each process in @trace, which is read several times, however many
 * processes there are.  *@out is NULL on failure, and where the trace has no whole snapshot.
 * Returns 0, -ENOMEM, -EAGAIN or -errno of read(2).
 */
int verdicts_find(struct verdicts **out, struct mlk_reader *trace,
		  const struct verdict_rules *rules);

/* Why *@out is NULL, though 0 was returned.  *@first_ns is the end of the first pass where it was
 * too late, CLOCK_MONOTONIC.  Returns 0, -ENOMEM or -errno of read(2). */
int verdicts_explain(struct mlk_reader *trace, const struct verdict_rules *rules,
		     enum verdict_lack *lack, uint64_t *first_ns);

/* The processes that were judged: their number, and the @i-th. */
size_t verdicts_nr(const struct verdicts *v);
const struct verdict_process *verdicts_process(const struct verdicts *v, size_t i);

struct holders;
struct reach_block;
struct root_names;

/* Who holds the @i-th process's blocks, if that was asked for. */
struct verdict_holders {
	const struct holders *holders; /* NULL: its last pass is damaged */
	const struct root_names *roots;
	const struct reach_block *blocks;  /* those that were judged, ascending */
	const struct live_amount *amounts; /* of a sample; else NULL */
	const uint8_t *verdicts;	   /* enum block_verdict of each */
	size_t nr;
};

/* All of it is valid until verdicts_free(). */
struct verdict_holders verdicts_holders(const struct verdicts *v, size_t i);

/* What points to the beginning of a block, in place of the least size of a block that does. */
#define OLDER_OF_NONE 0
#define OLDER_OF_ROOT 1

/* A block that a walk through the allocator's memory found. */
struct older_block {
	uint32_t tgid;
	uint64_t time_ns;	/* of its allocation; 0: that is not in the trace */
	uint64_t address, size; /* bytes that the program may use */
	/* Its first word, if that points into data of a file: the path, borrowed from the verdicts,
	 * and bytes into the file; else NULL. */
	const char *first_path;
	uint64_t first_offset;
	uint64_t referrer; /* as the allocator would round it up */
	enum block_verdict verdict;
};

/* Call @visit with @arg for each whose allocation is not in the trace, by process and address;
 * @block is valid for the call.  Returns 0, or what @visit returned other than that, which ends it.
 */
int verdicts_each_older(const struct verdicts *v,
			int (*visit)(void *arg, const struct older_block *block), void *arg);

/* The same for those whose allocation is, and which were judged; none if there are no others. */
int verdicts_each_known(const struct verdicts *v,
			int (*visit)(void *arg, const struct older_block *block), void *arg);

/* What became of @block. */
enum block_verdict verdicts_of(const struct verdicts *v, const struct live_block *block);

/* Static text for people and programs: "lost", "lost with", ...; "lost-with". */
const char *block_verdict_text(enum block_verdict verdict);
const char *block_verdict_word(enum block_verdict verdict);

/* NULL is allowed. */
void verdicts_free(struct verdicts *v);

#endif
