/* events.h - the payload of an EVENTS chunk, doc/trace-format.md 4.4: encoder and decoder */
#ifndef MLK_EVENTS_H
#define MLK_EVENTS_H

#include <endian.h>

#include "format/chunk/codec.h"
#include "format/event/dict.h"
#include "format/event/filter.h"
#include "format/event/frames.h"
#include "format/event/image.h"
#include "format/event/predict.h"
#include "format/event/reuse.h"

#define MLK_EVENTS_TARGET (2u << 20)   /* bytes in all columns, at which a chunk is full */
#define MLK_MAX_HELD	  (128u << 20) /* bytes that the images of a chunk may hold together */

#define MLK_MAX_STREAMS	  4096u	 /* threads in a chunk */
#define MLK_MAX_STREAMS_0 65536u /* of the first coding, which knew no limit */

/* How the columns are coded: bits 4-7 of the payload's first byte. */
enum mlk_coding {
	MLK_CODING_0 = 0, /* version 1.0 */
	MLK_CODING_1 = 1, /* version 1.1: words are guessed */
	MLK_CODING_2 = 2, /* version 1.8: no registers and stacks, see format/record/summary.h */
	MLK_CODING_3 = 3, /* version 1.16: what came lately, and what allocators return next */
	MLK_CODING_4 = 4, /* version 1.19: pointers into the stack by distances */
};

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
	MLK_COL_NR_0, /* so many has the first coding */
	MLK_COL_TIME_HIGH = MLK_COL_NR_0,
	MLK_COL_REG_WORDS,
	MLK_COL_TOP_WORDS,
	MLK_COL_NR_1, /* so many has the second coding before version 1.12 */
	MLK_COL_FRAMES = MLK_COL_NR_1,
	MLK_COL_FRAME_STACKS,
	MLK_COL_NR,
};

/* The head of a record: its kind, and bits. */
enum {
	MLK_HEAD_KIND = 0x1f,
	MLK_HEAD_NESTED = 0x20,
	/* ALLOC, from the fourth coding on: its address is as expected */
	MLK_HEAD_FIRST = 0x40,
	MLK_HEAD_SECOND = 0x80,
};

/* How words are numbered: a new one, zero, in the second coding what was guessed, and then those of
 * the dictionary.  In the fourth also a new one near the last address; and in the columns of
 * registers and tops those that came lately, before those of the dictionary. */
enum {
	MLK_WORD_NEW = 0,
	MLK_WORD_ZERO = 1,
	MLK_WORD_FIRST_0 = 2,
	MLK_WORD_BESIDE = 2,
	MLK_WORD_PLACE = 3,
	MLK_WORD_FIRST_1 = 4,
	MLK_WORD_NEAR = 4,
	MLK_WORD_FIRST = 5,
};

/* How many words that came lately the words of @column are told by, if they are among these. */
static inline unsigned int mlk_column_recent(enum mlk_column column)
{
	return column == MLK_COL_WORDS ? 0 : MLK_RECENT;
}

/* Have records of @kind the address of memory? */
static inline bool mlk_kind_has_addr(unsigned int kind)
{
	return kind != MLK_EXEC && kind != MLK_FORK && kind != MLK_EXIT;
}

/* Have records of @kind that are no ALLOC the size of a range? */
static inline bool mlk_kind_has_range(unsigned int kind)
{
	return kind == MLK_UNMAP || kind == MLK_PAGES;
}

/* Do records of @kind end the life of a block? */
static inline bool mlk_kind_frees(unsigned int kind)
{
	return kind == MLK_FREE || kind == MLK_RELEASE;
}

/* What is known of a thread, from the beginning of the chunk. */
struct mlk_stream {
	uint32_t tgid, tid;
	uint64_t regs[MLK_MAX_REGS];
	uint64_t end;			    /* of its last stack */
	uint64_t top[MLK_BLOCK / MLK_WORD]; /* decoder: its last slice 0, as bytes */
	struct mlk_image image;		    /* the stack as the mode keeps it */
	struct mlk_image raw; /* encoder: the stack as it was, to see quickly what changed */
	uint32_t epoch;	      /* encoder: of the filter, when raw was filled */
};

/* A word to be written, its column, and the entries of its guesses. */
struct mlk_waiting {
	uint64_t word;
	struct mlk_guess guess;
	enum mlk_column column;
};

#define MLK_MAX_WAITING	   64
#define MLK_RECENT_AT_BITS 11

/* A chunk being filled, and what is known of the events in it.  All zero: none is. */
struct mlk_encoder {
	struct mlk_filter filter;
	uint64_t time_ns, addr, alloc_id, new_word; /* of the record before that had one */
	uint32_t epoch;				    /* of the filter */
	struct mlk_enc columns[MLK_COL_NR];
	size_t bytes;		    /* in all columns */
	uint64_t held;		    /* bytes in all images */
	struct mlk_stream *streams; /* by thread number - 1; those past nr keep their memory */
	size_t nr, room;
	struct mlk_dict threads; /* number of each */
	struct mlk_dict words;	 /* number of each word */
	struct mlk_predict predict;
	struct mlk_waiting waiting[MLK_MAX_WAITING]; /* words of the current event */
	unsigned int nr_waiting;
	uint64_t told_to; /* words of the current stack, up to the last one that was told */
	/* where a word may be among the last ones, by hash; true or not */
	uint16_t recent_at[1 << MLK_RECENT_AT_BITS];
	struct mlk_dict blocks; /* number of the block that was allocated last at each address */
	struct mlk_reuse reuse;
	struct mlk_frames_enc frames;
};

/* Where recent_at says when @word came. */
static inline unsigned int mlk_recent_slot(uint64_t word)
{
	return (unsigned int)(word * 0x9e3779b97f4a7c15u >> (64 - MLK_RECENT_AT_BITS));
}

/* Begin a chunk whose header's first time is @first_ns. */
void mlk_encoder_begin(struct mlk_encoder *e, uint64_t first_ns);
/* Append @event.  Returns 0, -EINVAL (nothing was appended) or -ENOMEM (the chunk is lost). */
int mlk_encoder_add(struct mlk_encoder *e, const struct mlk_event *event);
/* Is it time for a new chunk? */
bool mlk_encoder_full(const struct mlk_encoder *e);
/* Compare the stacks that follow anew: the filter keeps other words now. */
void mlk_encoder_forget(struct mlk_encoder *e);
/* Append the chunk's payload to @out. out->failed is set if memory runs out. */
void mlk_encoder_finish(struct mlk_encoder *e, struct mlk_enc *out);
void mlk_encoder_release(struct mlk_encoder *e);

/* A chunk being read, as mlk_encoder. */
struct mlk_decoder {
	uint8_t mode;	/* enum mlk_stack_mode */
	uint8_t coding; /* enum mlk_coding */
	struct mlk_predict predict;
	uint64_t time_ns, addr, alloc_id, new_word;
	struct mlk_dec columns[MLK_COL_NR];
	uint64_t held;
	struct mlk_stream *streams;
	size_t nr, room;
	uint64_t *words; /* the dictionary: by number, from the first one on; and 0 below */
	size_t nr_words, room_words;
	struct mlk_reuse reuse;
	uint64_t sp, lo;     /* of the current event; lo is a multiple of MLK_WORD */
	uint64_t changed_to; /* where the highest word listed for this event ends, 0: none was */
	uint64_t told_to;    /* how many words there are from lo up to there */
	/* Slice 0 of the event returned last, of nr_under words, is laid over the image until the
	 * next, where that has zeros: bit i of empty for word i. */
	struct mlk_stream *covered;
	unsigned int nr_under;
	uint32_t empty;
	struct mlk_frames_dec frames;
};

/* Begin the chunk whose payload is @d, to read its records as a whole or, with @heads, their heads
 * alone.  Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_decoder_begin(struct mlk_decoder *c, struct mlk_dec *d, uint64_t first_ns, bool heads);
/* Are there more records? */
bool mlk_decoder_more(const struct mlk_decoder *c);
/* Read the next record; its stack is valid until the next call.  0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_decoder_next(struct mlk_decoder *c, struct mlk_event *event);
/* The same of its head alone: @event's registers and stack, from regs on, are left as they are. */
int mlk_decoder_next_head(struct mlk_decoder *c, struct mlk_event *event);
void mlk_decoder_release(struct mlk_decoder *c);

/* Append to @to the payload @d without its columns of registers and stacks: heads can be read of
 * it.  Returns 0 or MLK_E_CORRUPT; to->failed is set if memory runs out. */
int mlk_events_copy_heads(struct mlk_dec *d, struct mlk_enc *to);

/* The registers and the stack of an ALLOC, in stack_enc.c and stack_dec.c.  Return as
 * mlk_encoder_add() and mlk_decoder_next(). */
int mlk_encode_stack(struct mlk_encoder *e, struct mlk_stream *s, const struct mlk_event *ev);
int mlk_decode_stack(struct mlk_decoder *c, struct mlk_stream *s, struct mlk_event *ev);
/* @word came, as mlk_predict_came(). */
void mlk_encode_came(struct mlk_encoder *e, uint64_t word);
/* Take slice 0 of the event returned last off the image. */
void mlk_decode_uncover(struct mlk_decoder *c);

/* Append a stream to those in *@streams.  NULL: out of memory. */
struct mlk_stream *mlk_stream_add(struct mlk_stream **streams, size_t *nr, size_t *room,
				  const uint32_t id[2]);
/* Append @value to a growing list.  0 or -ENOMEM. */
int mlk_append(uint64_t **list, size_t *nr, size_t *room, uint64_t value);
/* Release the memory of all streams' images, of the @room there are. */
void mlk_streams_trim(struct mlk_stream *streams, size_t room);

/* Where no program has its stack, but a hostile one. */
#define MLK_STACK_MARK 0xc00000000000u

/* The words near a stack that coding 4 tells by distances: none, should it be near the mark. */
struct mlk_near {
	uint64_t from, len;
};

/* Those around the stack pointer @sp. */
static inline struct mlk_near mlk_near_stack(uint64_t sp)
{
	const uint64_t from = mlk_near_stack_from(sp), len = MLK_NEAR_STACK;

	return (struct mlk_near){from, from - (MLK_STACK_MARK - 2 * len) < 4 * len ? 0 : len};
}

/*
 * The word at the address @addr of a stack as coding 4 tells it, and back: pointers near the stack
 * and their distances to where they are, from the mark on, change places.  So such a pointer is the
 * same wherever a frame may be.
 */
static inline uint64_t mlk_stack_word(uint64_t word, uint64_t addr, struct mlk_near near)
{
	const uint64_t away = MLK_STACK_MARK - addr, back = word - away;

	if (__builtin_expect(word - near.from < near.len, 0))
		return word + away;
	/* no branch: which words are pointers is not to be guessed */
	return word - (away & -(uint64_t)(back - near.from < near.len));
}

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

/* The word at @at, which must be held. */
static inline uint64_t mlk_image_word(const struct mlk_image *im, uint64_t at)
{
	uint64_t word;

	memcpy(&word, mlk_image_at(im, at), sizeof(word));
	return le64toh(word);
}

/* Make the word at @at, which must be held, @word. */
static inline void mlk_image_set(struct mlk_image *im, uint64_t at, uint64_t word)
{
	word = htole64(word);
	memcpy(mlk_image_at(im, at), &word, sizeof(word));
}

#endif
