/* reader.h - read a trace back, from a file or from memory, whatever happened to it */
#ifndef MLK_READER_H
#define MLK_READER_H

#include <stdbool.h>

#include "format/code.h"
#include "format/code_names.h"
#include "format/heap.h"
#include "format/reach.h"
#include "format/regions.h"
#include "format/smaps.h"
#include "format/trace.h"
#include "format/unwound.h"

struct mlk_reader; /* opaque: one per trace, one thread at a time */

/* What a record is, and which of them a reader gives. */
enum mlk_record_type {
	MLK_RECORD_EVENT = 1 << 0,
	MLK_RECORD_MAPS = 1 << 1,
	MLK_RECORD_MODULE = 1 << 2,
	MLK_RECORD_THREAD = 1 << 3,
	MLK_RECORD_ALL = (1 << 4) - 1,
	/* To show how a trace is made: */
	MLK_RECORD_META = 1 << 4, /* see mlk_reader_meta() */
	MLK_RECORD_LOSSES = 1 << 5,
	MLK_RECORD_END = 1 << 6,
	MLK_RECORD_CHUNK = 1 << 7,   /* a chunk begins; its records follow */
	MLK_RECORD_DAMAGED = 1 << 8, /* that chunk does not decode, or not from here on */
	MLK_RECORD_SKIPPED = 1 << 9, /* bytes that belong to no whole chunk */
	MLK_RECORD_INDEX = 1 << 10,  /* an entry of an INDEX chunk, unchanged */
	/* What a thread was doing, in an event of kind MLK_ALLOC that gave out no block; its size
	 * is a mask of the registers that are known.  Not among MLK_RECORD_ALL. */
	MLK_RECORD_STACK = 1 << 11,
	MLK_RECORD_OVERRUN = 1 << 12, /* not among MLK_RECORD_ALL */
	MLK_RECORD_UNWOUND = 1 << 13, /* not among MLK_RECORD_ALL */
	/* An event where nothing is said of its registers and its stack, from nr_regs and regs on;
	 * in a fraction of the time.  Asked for together with MLK_RECORD_UNWOUND, those that the
	 * UNWOUND chunks have; else those of the EVENTS chunks, in place of MLK_RECORD_EVENT. */
	MLK_RECORD_HEAD = 1 << 14,
	MLK_RECORD_ORIGIN = 1 << 15,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_MEMORY = 1 << 16,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_ACCOUNT = 1 << 17,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_REGIONS = 1 << 18,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_MARK = 1 << 19,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_POINTERS = 1 << 20,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_PASS = 1 << 21,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_SMAPS = 1 << 22,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_HEAP = 1 << 23,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_CODE_NAMES = 1 << 24,  /* not among MLK_RECORD_ALL */
	MLK_RECORD_CODE = 1 << 25,	  /* not among MLK_RECORD_ALL */
	MLK_RECORD_INTERPRETER = 1 << 26, /* not among MLK_RECORD_ALL */
	MLK_RECORD_DUMP = (1 << 27) - 1,
};

/* The file header, doc/trace-format.md section 2. */
struct mlk_header {
	uint16_t major, minor;
	uint32_t len;
	uint64_t required, optional;
	uint32_t salt;
	uint32_t stack_mode; /* enum mlk_stack_mode */
	uint64_t realtime_ns, start_ns;
};

/* The header of a chunk, section 3. */
struct mlk_chunk {
	uint64_t offset;	      /* of the header in the file; only in records, as the next */
	enum mlk_record_type records; /* what the chunk holds; 0: of an unknown type */
	uint32_t salt;		      /* the file's */
	uint16_t type, flags;
	uint64_t seq;
	uint32_t stored_len, raw_len; /* of the payload */
	uint32_t payload_crc;	      /* as stored */
	uint64_t first_ns, last_ns;
	uint64_t lost_allocs, lost_frees, lost_others;
	uint32_t nr_records;
};

/* Where a chunk is, without its losses. */
struct mlk_entry {
	uint64_t offset; /* of the header in the file */
	enum mlk_record_type records;
	uint16_t type;
	uint64_t seq;
	uint64_t first_ns, last_ns; /* both 0: what it holds has no time */
	uint32_t nr_records;
};

/* Bytes of the file. */
struct mlk_skipped {
	uint64_t offset, len;
};

/* How and when, CLOCK_MONOTONIC, a recording ended. */
struct mlk_ending {
	enum mlk_end reason;
	uint64_t time_ns;
};

/* One item of a trace.  What it points to is valid until the next call on the reader. */
struct mlk_record {
	enum mlk_record_type type;
	union {
		struct mlk_event event; /* of MLK_RECORD_STACK and MLK_RECORD_HEAD, too */
		struct mlk_overrun overrun;
		struct mlk_unwound unwound; /* except for its modules valid until the next one */
		struct mlk_maps maps;
		struct mlk_module module;
		struct mlk_thread thread;
		struct mlk_origin origin;
		struct mlk_memory memory;
		struct mlk_account account;
		struct mlk_mark mark;
		struct mlk_regions regions;
		struct mlk_pointers pointers;
		struct mlk_pass pass;
		struct mlk_heap heap;
		struct mlk_smaps smaps;
		struct mlk_code_names code_names;
		struct mlk_code code;
		struct mlk_interpreter interpreter;
		struct mlk_losses losses;
		struct mlk_ending end;
		struct mlk_chunk chunk;
		struct mlk_entry entry;
		struct mlk_skipped skipped;
	};
};

/* The state of the trace as far as it was read. */
struct mlk_condition {
	uint64_t chunks;      /* whole chunks read */
	uint64_t chunks_lost; /* chunks that are missing by their sequence numbers, or do not decode
			       */
	uint64_t lost_always; /* of them: those that each pass over the trace counts, as the missing
			       * ones; the rest it counts if it was to read or check them */
	/* The time, CLOCK_MONOTONIC in nanoseconds, in which all that lay in lost chunks happened;
	 * both 0: none was lost.  A lost end of the file has no time. */
	uint64_t lost_from_ns, lost_to_ns;
	uint64_t bytes_skipped;	 /* bytes that belong to no whole chunk */
	uint64_t chunks_unknown; /* chunks of a type this reader does not know */
	uint64_t unwound_unused; /* UNWOUND chunks that could not be used in place of events;
				    whoever tries counts them */
	bool index_lied;	 /* the index does not match the chunk headers */
	bool ended;		 /* the recording was ended properly */
	enum mlk_end reason;	 /* when ended */
	uint64_t end_ns;  /* when ended: at this time; else the time of the last event seen */
	uint64_t last_ns; /* the latest time in the header of a chunk */
	struct mlk_losses losses;
};

/*
 * Open the trace in the regular file @path, or that is open as @fd, which is the reader's from then
 * on, also on failure; or in @buf (@len bytes, borrowed until the reader is freed).  Read its first
 * chunks up to the META chunk.
 *
 * On success *@out is released with mlk_reader_free(); on failure it is NULL.
 * Returns 0, -ENOMEM, -errno of open(2) or read(2), -EISDIR or -EINVAL (not a regular file),
 * MLK_E_MAGIC, MLK_E_VERSION, MLK_E_HEADER or MLK_E_EMPTY.
 */
int mlk_reader_open_file(struct mlk_reader **out, const char *path);
int mlk_reader_open_fd(struct mlk_reader **out, int fd);
int mlk_reader_open_mem(struct mlk_reader **out, const void *buf, size_t len);

/*
 * Open the trace that is written to the pipe or socket @fd, which is borrowed until
 * mlk_reader_free(), and wait for its first chunks up to META.  The reader follows, see
 * mlk_reader_follow(), and cannot go back to what mlk_reader_forget() has forgotten.
 *
 * *@out is as above.  Returns 0, -ENOMEM, -errno of read(2), MLK_E_MAGIC, MLK_E_VERSION,
 * MLK_E_HEADER, or MLK_E_EMPTY: the stream ended before.
 */
int mlk_reader_open_stream(struct mlk_reader **out, int fd);

/*
 * Another reader of the same trace, for another thread: each may be used by one thread at a time,
 * both at once.  @r must outlive it.
 *
 * On success *@out is at the first chunk, and is released with mlk_reader_free(); on failure it is
 * NULL.  Returns 0, -ENOMEM or -errno of fcntl(2).
 */
int mlk_reader_clone(struct mlk_reader **out, const struct mlk_reader *r);

/* Who was recorded; valid until mlk_reader_free().  All empty when that chunk is damaged. */
const struct mlk_meta *mlk_reader_meta(const struct mlk_reader *r);

/* The file header. */
struct mlk_header mlk_reader_header(const struct mlk_reader *r);

/* Begin again at the first chunk, and from now on give only the records in @types
 * (a set of enum mlk_record_type); chunks that hold none of them are stepped over unread. */
void mlk_reader_rewind(struct mlk_reader *r, unsigned int types);

/* Until the next call of that, read the other chunks, too, but those with records in @but (a set as
 * above), to count those that are damaged. */
void mlk_reader_check_others(struct mlk_reader *r, unsigned int but);

/*
 * Copy the next record into *@rec.  Damaged chunks are stepped over and counted.
 * Returns 1 for a record, 0 at the end, -ENOMEM or the -errno of read(2).
 */
int mlk_reader_next(struct mlk_reader *r, struct mlk_record *rec);

/*
 * List all chunks, but those of the index, in the order of the file: from the index if there is one
 * and it is whole and says of each chunk what its header says, else by looking at the headers
 * alone; if it says something else than a header that is whole, the condition tells.  *@entries is
 * valid until the next call of this, or mlk_reader_free().  Where mlk_reader_next() is does not
 * change. Returns 0, -ENOMEM or -errno of read(2); *@entries and *@nr are then NULL and 0.
 */
int mlk_reader_list(struct mlk_reader *r, const struct mlk_entry **entries, size_t *nr);

/*
 * From now on give only the records in @types of the chunk @entry, and then the end; the condition
 * is that of this chunk alone.  Chunks are decoded each for itself: with a reader for each thread,
 * several at once.
 * Returns 0, -errno of read(2), or MLK_E_CORRUPT: there is no such chunk, the index lied.  Then
 * mlk_reader_next() is at its end, and the next mlk_reader_list() looks at the chunks themselves.
 */
int mlk_reader_seek(struct mlk_reader *r, const struct mlk_entry *entry, unsigned int types);

/* Check the payload of the chunk @entry by its sum, without decoding it.  After that as after
 * mlk_reader_seek(), at the end.  Returns 0, -ENOMEM, -errno of read(2), or MLK_E_CORRUPT. */
int mlk_reader_check(struct mlk_reader *r, const struct mlk_entry *entry);

/* What is known of the trace's state; complete after mlk_reader_next() returned 0. */
const struct mlk_condition *mlk_reader_condition(const struct mlk_reader *r);

/* fstat(2) of the file.  Returns 0 or -errno; -EBADF: it is none, but memory. */
struct stat;
int mlk_reader_stat(const struct mlk_reader *r, struct stat *st);

/* Is the file still being written?  Its recorder holds a lock on it (flock(2), exclusive) as long
 * as it lives. */
bool mlk_reader_is_growing(const struct mlk_reader *r);

/*
 * Read a trace while it is being written: see what was appended.  After mlk_reader_next() has
 * returned 0 it may give more records then.  A chunk that is not whole yet is waited for, unless
 * @last says that there will be no more.  A clone is to be told after the reader it was made of.
 *
 * Returns 0, -ENOMEM or the -errno of fstat(2) or read(2).
 */
int mlk_reader_follow(struct mlk_reader *r, bool last);

/* Was @r opened by mlk_reader_open_stream()? */
bool mlk_reader_is_stream(const struct mlk_reader *r);

/* Has the stream that @r reads ended, and was all of it taken in?  False for a file. */
bool mlk_reader_stream_ended(const struct mlk_reader *r);

/* Write the whole stream that @r reads to @fd, too, which is borrowed until mlk_reader_free():
 * before anything of it was forgotten.  mlk_reader_copied() tells how many bytes went there, and
 * returns 0 or the -errno of the write(2) that ended it. */
void mlk_reader_copy_stream(struct mlk_reader *r, int fd);
int mlk_reader_copied(const struct mlk_reader *r, uint64_t *bytes);

/* Neither @r nor its clones will be asked for what is before @offset; of a stream it is then not
 * kept any longer. */
void mlk_reader_forget(struct mlk_reader *r, uint64_t offset);

/* Bytes of the file, and offset of the chunk read last, for messages and progress. */
uint64_t mlk_reader_size(const struct mlk_reader *r);
uint64_t mlk_reader_offset(const struct mlk_reader *r);

/* Release @r; NULL is allowed. */
void mlk_reader_free(struct mlk_reader *r);

#endif
