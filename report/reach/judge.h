/* judge.h - the blocks of one process are judged, step by step
 *
 * The steps are in the order of the functions here.  They are apart from verdicts.c, which reads
 * the trace once for all processes.
 */
#ifndef REPORT_JUDGE_H
#define REPORT_JUDGE_H

#include "format/reader.h"
#include "report/live/live.h"
#include "report/live/sampling.h"
#include "report/reach/graph/holders.h"
#include "report/reach/graph/missed.h"
#include "report/reach/graph/reach_pass.h"
#include "report/reach/older.h"
#include "report/reach/root_names.h"
#include "report/reach/snapshots.h"
#include "report/reach/verdicts.h"
#include "report/reach/words_ahead.h"

#define JUDGE_OLDER 0 /* in place of a time: nobody saw the block allocated */

/* A process that is judged.  All zero but the first lines is the beginning. */
struct judge {
	const struct verdict_rules *rules; /* borrowed, as the next ones */
	const struct snapshot *snapshot;
	const struct root_modules *modules; /* NULL: nobody asks who holds what */
	const struct root_modules *named;   /* NULL: no root is chosen by its name */
	struct verdict_process process;	    /* the answer, */
	struct reach_block *blocks;	    /* ascending, */
	uint8_t *verdicts;		    /* enum block_verdict of each, */
	struct live_amount *amounts;	    /* of a sample: what each stands for; else NULL, */
	struct holders holders;		    /* and of the last whole pass: */
	struct root_names *roots;
	size_t nr, room;

	struct older older;	 /* those of blocks that have the time JUDGE_OLDER */
	uint64_t *referrers;	 /* of each block, as struct older_block has it; NULL: none */
	struct mlk_range *files; /* data of files; ascending, with paths of their own */
	size_t nr_files;

	struct reach_block *recorded; /* all that live or lived during the snapshot, also those
					 that are not judged; none if there are no older ones */
	size_t nr_recorded, room_recorded;
	struct live_amount outstanding; /* all of it when the snapshot ended */
	struct freed *freed;
	struct block_index index;
	struct reach_area *areas, *chosen;
	struct reach_world world;
	struct reach_roots numbering;
	uint8_t *classes; /* enum reach_class of each block, the best so far */
	bool *pointed;
	struct missed missed;
	size_t next;		    /* pass of the snapshot that is not begun */
	struct reach_pass *current; /* that is under way, or was whole last */
	bool under_way;
	uint64_t words; /* of it, so far */
	bool wrong;	/* they do not ascend */
	bool again;	/* only the last whole pass is read, once more */
};

/* Begin.  @j is to be released in any case.  Returns 0 or -ENOMEM. */
int judge_begin(struct judge *j);

/* Before the snapshot ended @change happened.  Returns 0 or -ENOMEM. */
int judge_note_change(struct judge *j, const struct live_change *change);

/* @block lived when the snapshot ended.  Returns 0 or -ENOMEM. */
int judge_take_block(struct judge *j, const struct live_block *block);

/* For judge_prepare(), in judge_older.c: what the allocator had in use and is not recorded is a
 * block, too.  Returns 0 or -ENOMEM. */
int judge_add_older(struct judge *j);

/* After the verdicts: add up those blocks, and keep which data of files the last pass has walked
 * through.  Returns 0 or -ENOMEM. */
int judge_finish_older(struct judge *j);

/* After a pass: what points to each block in it, where that is asked later.  Returns 0 or -ENOMEM.
 */
int judge_note_referrers(struct judge *j);

/* As verdicts_each_older() and verdicts_each_known(), of this process. */
int judge_each_older(const struct judge *j,
		     int (*visit)(void *arg, const struct older_block *block), void *arg);
int judge_each_known(const struct judge *j,
		     int (*visit)(void *arg, const struct older_block *block), void *arg);

/* The place in j->blocks of the block that was allocated at @address and @time_ns; j->nr: it is
 * none of them. */
size_t judge_place(const struct judge *j, uint64_t address, uint64_t time_ns);

/* The verdict of the block that was allocated at @address and @time_ns. */
enum block_verdict judge_find(const struct judge *j, uint64_t address, uint64_t time_ns);

/* All blocks were taken.  Returns 0 or -ENOMEM. */
int judge_prepare(struct judge *j);

/* What @block, one of them, represents, where that differs from its size. */
void judge_weigh_block(struct judge *j, const struct live_block *block);

/* Take in the next words of the trace.  Returns 0 or -ENOMEM. */
int judge_take_words(struct judge *j, const struct found_words *found);

/* There are no more.  Returns 0 or -ENOMEM. */
int judge_end_words(struct judge *j);

/* Is to be asked for the words of the last whole pass once more, as a later one was not whole?
 * Then judge_take_words() and judge_end_words() are due again. */
bool judge_wants_again(struct judge *j);

/* The rest: the verdicts, and who holds what.  Returns 0, -ENOMEM or -EAGAIN. */
int judge_finish(struct judge *j);

/* What became of @block of this process. */
enum block_verdict judge_verdict(const struct judge *j, const struct live_block *block);

/* Release what only the steps need; and all. */
void judge_release_steps(struct judge *j);
void judge_release(struct judge *j);

#endif
