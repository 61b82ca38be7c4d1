/* reader_state.h - what a reader is made of, for reader.c and reader_open.c alone */
#ifndef MLK_READER_STATE_H
#define MLK_READER_STATE_H

#include "format/chunk/chunks.h"
#include "format/chunk/index.h"
#include "format/event/events.h"
#include "format/reader.h"
#include "format/record/arena.h"
#include "format/record/code_names.h"
#include "format/record/heap.h"
#include "format/record/memory.h"
#include "format/record/reach.h"
#include "format/record/smaps.h"
#include "format/record/summary.h"
#include "format/record/unwound.h"

/* What the reader does next. */
enum step {
	STEP_FIND,    /* look for the next chunk */
	STEP_START,   /* its header was found */
	STEP_CHECK,   /* its payload is only to be checked */
	STEP_LOAD,    /* its payload is wanted */
	STEP_RECORDS, /* the payload is available */
	STEP_HEADS,   /* that of events of which the heads are wanted */
	STEP_SUMMARY, /* that of events without registers and stacks */
	STEP_END,
};

/* Where a reader is, and what it has lent out. */
struct mlk_reader {
	struct mlk_chunks chunks;
	unsigned int types;	/* records requested */
	unsigned int unchecked; /* where others are checked: but chunks that hold these */
	bool checks;
	struct mlk_meta meta;
	bool meta_read;
	struct mlk_arena meta_text;
	/* the current chunk */
	enum step step;
	uint64_t left; /* records not returned yet; not of EVENTS */
	struct mlk_dec dec;
	struct mlk_dec heads; /* of an OVERRUNS chunk */
	struct mlk_decoder events;
	struct mlk_arena text; /* strings of the record returned last */
	struct mlk_mapping *mappings;
	struct mlk_unwound_room unwound;
	struct mlk_sum_dec summary;
	struct mlk_unwound stacks;	/* of the summary */
	uint64_t unwound_ns;		/* of the one returned last: its first time */
	struct mlk_memory_state memory; /* of a MEMORY chunk: of its samples returned */
	uint64_t mark_ns;		/* of a MARKS chunk: the last one returned */
	struct mlk_reach_room reach;
	struct mlk_heap_room heap;
	struct mlk_smaps_room smaps;
	struct mlk_code_names_room names;
	struct mlk_entry entry; /* of an INDEX chunk, returned last */
	struct mlk_entries list;
	bool index_lied;
	bool single; /* only the current chunk was requested */
};

/* Which records a chunk of @type holds; 0: that is not known. */
unsigned int mlk_reader_records_of(unsigned int type);

/* As mlk_reader_open_mem(), of @source, which belongs to the reader then. */
int mlk_reader_open_source(struct mlk_reader **out, const struct mlk_source *source);

/* Losses are in each chunk's header too: a trace that was cut knows them anyway. */
void mlk_reader_note_header(struct mlk_reader *r);

#endif
