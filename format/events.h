/* events.h - the payload of an EVENTS chunk, doc/trace-format.md 4.4: encoder and decoder */
#ifndef MLK_EVENTS_H
#define MLK_EVENTS_H

#include <endian.h>

#include "format/codec.h"
#include "format/dict.h"
#include "format/filter.h"
#include "format/image.h"

#define MLK_EVENTS_TARGET (1u << 20)   /* bytes in all columns, at which a chunk is full */
#define MLK_MAX_HELD	  (128u << 20) /* bytes that the images of a chunk may hold together */

/* The columns of the payload, in their order. */
enum mlk_column {
	MLK_COL_KIND,
	MLK_COL_THREAD,
	MLK_COL_TIME,
	MLK_COL_ADDR,
	MLK_COL_SIZE,
	MLK_COL_FUNC,
	MLK_COL_ID,
	MLK_COL_FLAGS,
	MLK_COL_REGS,
	MLK_COL_STACK,
	MLK_COL_MASKS,
	MLK_COL_WORDS,
	MLK_COL_NEW,
	MLK_COL_TOP,
	MLK_COL_NR,
};

enum { MLK_HEAD_KIND = 0x1f, MLK_HEAD_NESTED = 0x20 };

/* Numbers of words in the dictionary: a new one, and the one that is always there. */
enum { MLK_WORD_NEW = 0, MLK_WORD_ZERO = 1 };

/* What is known of a thread, from the beginning of the chunk. */
struct mlk_stream {
	uint32_t tgid, tid;
	uint64_t regs[MLK_MAX_REGS];
	uint64_t end;			    /* of its last stack */
	uint64_t top[MLK_BLOCK / MLK_WORD]; /* decoder: its last slice 0, as it was given out */
	struct mlk_image image;		    /* the stack as the mode keeps it */
	struct mlk_image raw; /* encoder: the stack as it was, to see quickly what changed */
	uint32_t epoch;	      /* encoder: of the filter, when raw was filled */
};

struct mlk_encoder {
	struct mlk_filter filter;
	uint64_t time_ns, addr, alloc_id, new_word; /* of the record before that had one */
	uint32_t nr_allocs;
	uint32_t epoch; /* of the filter */
	struct mlk_enc columns[MLK_COL_NR];
	size_t bytes;		    /* in all columns */
	uint64_t held;		    /* bytes in all images */
	struct mlk_stream *streams; /* by thread number - 1; those past nr keep their memory */
	size_t nr, room;
	uint32_t *slots;	/* open-addressing table of thread numbers, 0 = free */
	size_t nr_slots;	/* a power of two */
	struct mlk_dict words;	/* number of each word */
	struct mlk_dict blocks; /* which ALLOC gave out each address last */
};

/* Begin a chunk whose header's first time is @first_ns. */
void mlk_encoder_begin(struct mlk_encoder *e, uint64_t first_ns);
/* Append @event.  Returns 0, -EINVAL (nothing was appended) or -ENOMEM (the chunk is lost). */
int mlk_encoder_add(struct mlk_encoder *e, const struct mlk_event *event);
/* Is it time for a new chunk? */
bool mlk_encoder_full(const struct mlk_encoder *e);
/* Compare the stacks that follow anew: the filter keeps other words now. */
void mlk_encoder_forget(struct mlk_encoder *e);
/* Append the chunk's payload to @out.  out->failed tells of a lack of memory. */
void mlk_encoder_finish(struct mlk_encoder *e, struct mlk_enc *out);
void mlk_encoder_release(struct mlk_encoder *e);

struct mlk_decoder {
	uint8_t mode; /* enum mlk_stack_mode */
	uint64_t time_ns, addr, alloc_id, new_word;
	struct mlk_dec columns[MLK_COL_NR];
	uint64_t held;
	struct mlk_stream *streams;
	size_t nr, room;
	uint64_t *words; /* the dictionary, from MLK_WORD_ZERO on */
	size_t nr_words, room_words;
	uint64_t *blocks; /* addresses given out in the chunk, in order */
	size_t nr_blocks, room_blocks;
	uint64_t changed_to; /* where the highest word listed for this event ends, 0: none was */
	/* Slice 0 of the event given out last is laid over the image until the next. */
	struct mlk_stream *covered;
	uint64_t under[MLK_BLOCK / MLK_WORD];
	unsigned int nr_under;
};

/* Begin the chunk whose payload is @d.  Returns 0 or MLK_E_CORRUPT. */
int mlk_decoder_begin(struct mlk_decoder *c, struct mlk_dec *d, uint64_t first_ns);
/* Are there more records? */
bool mlk_decoder_more(const struct mlk_decoder *c);
/* Read the next record; its stack is valid until the next call.  0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_decoder_next(struct mlk_decoder *c, struct mlk_event *event);
void mlk_decoder_release(struct mlk_decoder *c);

/* Append a stream to those in *@streams.  NULL: out of memory. */
struct mlk_stream *mlk_stream_add(struct mlk_stream **streams, size_t *nr, size_t *room,
				  const uint32_t id[2]);
/* Release the memory of all streams' images, of the @room there are. */
void mlk_streams_trim(struct mlk_stream *streams, size_t room);

/* Where the slice that holds @at ends, or @end. */
static inline uint64_t mlk_slice_end(uint64_t at, uint64_t end)
{
	uint64_t last = at | (MLK_BLOCK - 1);

	return last < end ? last + 1 : end; /* the last slice of all has no next one */
}

/* Where the first words of the stack [@lo, @hi) end that are kept as they were. */
static inline uint64_t mlk_top_end(uint64_t lo, uint64_t hi)
{
	return hi - lo > MLK_BLOCK ? lo + MLK_BLOCK : hi;
}

static inline uint64_t mlk_image_word(const struct mlk_image *im, uint64_t at)
{
	uint64_t word;

	memcpy(&word, mlk_image_at(im, at), sizeof(word));
	return le64toh(word);
}

static inline void mlk_image_set(struct mlk_image *im, uint64_t at, uint64_t word)
{
	word = htole64(word);
	memcpy(mlk_image_at(im, at), &word, sizeof(word));
}

#endif
