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
	uint64_t stop_ns; /* the last snapshot that ended before, CLOCK_MONOTONIC */
};

/* What was judged of a process. */
struct verdict_process {
	uint32_t tgid;
	uint32_t snapshot;
	unsigned int passes;
	bool settled;		   /* the last pass changed nothing; false with a single one, too */
	uint64_t begin_ns, end_ns; /* of the snapshot */
	uint64_t words, read_bytes, unread_bytes; /* of the last pass */
	unsigned int unknown_threads;	     /* whose registers and stack pointer were not known */
	struct live_amount sums[VERDICT_NR]; /* of the blocks that lived at the end of it */
};

struct verdicts; /* opaque */

/*
 * Judge by the last snapshot of each process in @trace, which is read several times.  *@out is
 * NULL on failure, and where the trace has no whole snapshot.  Returns 0, -ENOMEM or -errno of
 * read(2).
 */
int verdicts_find(struct verdicts **out, struct mlk_reader *trace,
		  const struct verdict_rules *rules);

/* The processes that were judged: their number, and the @i-th. */
size_t verdicts_nr(const struct verdicts *v);
const struct verdict_process *verdicts_process(const struct verdicts *v, size_t i);

/* What became of @block. */
enum block_verdict verdicts_of(const struct verdicts *v, const struct live_block *block);

/* Static text for people and programs: "lost", "lost with", ...; "lost-with". */
const char *block_verdict_text(enum block_verdict verdict);
const char *block_verdict_word(enum block_verdict verdict);

/* NULL is allowed. */
void verdicts_free(struct verdicts *v);

#endif
