/* chunks.h - find, check and decompress the chunks of a trace, stepping over what is damaged */
#ifndef MLK_CHUNKS_H
#define MLK_CHUNKS_H

#include "format/chunk/chunk.h"
#include "format/chunk/pipe.h"
#include "format/reader.h"

/* The bytes of a trace. */
struct mlk_source {
	int fd;			 /* -1: from memory, or a stream */
	const uint8_t *mem;	 /* borrowed */
	struct mlk_pipe *stream; /* NULL: it is none */
	bool shares;		 /* the stream is another source's */
	uint64_t size;		 /* bytes there are */
	bool growing;		 /* there may be more: a chunk that is not whole is no damage */
};

/* A trace, and the way through its chunks. */
struct mlk_chunks {
	struct mlk_source source;
	struct mlk_header file;
	uint64_t at;	   /* offset where the next chunk is expected */
	uint64_t chunk_at; /* offset of the chunk read last */
	uint64_t next_seq;
	uint64_t last_ns;	 /* latest time of the chunks read */
	bool gap;		 /* chunks are missing, and none with a time was read since */
	struct mlk_chunk header; /* of the chunk read last */
	uint8_t *stored, *raw;	 /* its payload as stored, and decompressed */
	size_t stored_room, raw_room;
	struct mlk_condition condition;
};

/* Open the regular file @path.  Returns 0, -errno, -EISDIR, or -EINVAL for what is no regular file.
 */
int mlk_source_open(struct mlk_source *s, const char *path);
/* The same of the file that is open as @fd, which is closed on failure. */
int mlk_source_take(struct mlk_source *s, int fd);

/* See how many bytes there are now.  With @last there will be no more.  Returns 0, -ENOMEM or
 * -errno of fstat(2) or read(2). */
int mlk_source_grow(struct mlk_source *s, bool last);

/* Close the file or release the stream, if there is one; once more does nothing. */
void mlk_source_close(struct mlk_source *s);

/* Read the file header of c->source, which is set.  Returns 0, -errno of read(2),
 * MLK_E_MAGIC, MLK_E_VERSION or MLK_E_HEADER.  mlk_chunks_release() in any case. */
int mlk_chunks_open(struct mlk_chunks *c);

/* Open the trace that @with was opened on once more, at its first chunk.  Returns 0 or -errno of
 * fcntl(2).  mlk_chunks_release() in any case. */
int mlk_chunks_share(struct mlk_chunks *c, const struct mlk_chunks *with);

/* Back to the first chunk; the condition is as at the beginning. */
void mlk_chunks_rewind(struct mlk_chunks *c);

/* Is there a whole chunk at @at?  Returns 1 and c->header, 0 or -errno of read(2); the way through
 * the trace stays as it is. */
int mlk_chunks_header_at(struct mlk_chunks *c, uint64_t at);

/* Find the next whole chunk header.  Returns 1, 0 at the end, or -errno of read(2).  In a source
 * that grows, the next call goes on at the end if more is there then. */
int mlk_chunks_next(struct mlk_chunks *c);

/* Read the payload of the chunk found as it is stored, into c->stored, and check it.  Returns as
 * mlk_chunks_load(). */
int mlk_chunks_fetch(struct mlk_chunks *c);

/* Check and decompress the payload of the chunk found, into c->raw.  Returns 0, MLK_E_CORRUPT or
 * -ENOMEM or -errno of read(2). */
int mlk_chunks_load(struct mlk_chunks *c);

/* Count the chunk found as lost: its payload does not decode. */
void mlk_chunks_damaged(struct mlk_chunks *c);

/* Close the source and release what was read; @c is not to be used any more. */
void mlk_chunks_release(struct mlk_chunks *c);

#endif
