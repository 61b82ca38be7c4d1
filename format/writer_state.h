/* writer_state.h - what the parts of the writer share */
#ifndef MLK_WRITER_STATE_H
#define MLK_WRITER_STATE_H

#include "format/chunk/chunk_out.h"
#include "format/event/events.h"
#include "format/record/beside.h"
#include "format/writer.h"

/* A trace that is being written. */
struct mlk_writer {
	struct mlk_chunk_out *out;
	uint32_t salt;
	int err; /* final: out of memory in the middle of a chunk */
	struct mlk_losses losses, losses_written;
	uint64_t losses_ns; /* up to when those written were counted */
	/* the EVENTS chunk being filled */
	struct mlk_encoder events;
	uint32_t nr_events;
	uint64_t first_ns, last_ns;
	uint64_t now_ns, begun_ns;	    /* as last told, and before the chunk's first event */
	struct mlk_beside stacks, overruns; /* the chunks of these being filled */
	struct mlk_enc codes;		    /* functions of the next CODE chunk */
	uint32_t nr_codes;
};

/* Queue @raw as one chunk, and release it; @h comes with type, times and number of records. Returns
 * as mlk_writer_event(). */
int mlk_writer_put(struct mlk_writer *w, struct mlk_chunk *h, struct mlk_enc *raw);

/* The same of a chunk of one record at one moment. */
int mlk_writer_put_single(struct mlk_writer *w, enum mlk_chunk_type type, uint64_t time_ns,
			  struct mlk_enc *raw);

/* Write the CODE chunk being filled, before events that name its functions. */
int mlk_writer_flush_codes(struct mlk_writer *w);

#endif
