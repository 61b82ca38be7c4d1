/* chunks.c - a trace in a file or in memory, and the way through it, whatever happened to it */
#include "format/chunk/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

int mlk_source_open(struct mlk_source *s, const char *path)
{
	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*s = (struct mlk_source){.fd = -1};
	return fd < 0 ? -errno : mlk_source_take(s, fd);
}

int mlk_source_take(struct mlk_source *s, int fd)
{
	struct stat st;
	int err;

	*s = (struct mlk_source){.fd = fd};
	if (fstat(s->fd, &st))
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	else
		err = S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (err)
		mlk_source_close(s);
	else
		s->size = (uint64_t)st.st_size;
	return err;
}

/* Copy up to @len bytes from @offset to @to.  Returns the bytes there were, or -errno. */
static int64_t source_read(const struct mlk_source *s, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (!len || offset >= s->size)
		return 0;
	if (len > s->size - offset)
		len = (size_t)(s->size - offset);
	if (s->stream)
		return (int64_t)mlk_pipe_copy(s->stream, offset, to, len);
	if (s->fd < 0) {
		memcpy(to, s->mem + offset, len);
		return (int64_t)len;
	}
	while (done < len) {
		ssize_t n = pread(s->fd, (uint8_t *)to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* the file became shorter */
		done += (size_t)n;
	}
	return (int64_t)done;
}

int mlk_source_grow(struct mlk_source *s, bool last)
{
	struct stat st;
	int err = 0;

	if (s->stream) {
		if (!s->shares)
			err = mlk_pipe_take(s->stream);
		s->size = s->stream->base + s->stream->len;
	} else if (s->fd >= 0) {
		err = fstat(s->fd, &st) ? -errno : 0;
		if (!err)
			s->size = (uint64_t)st.st_size;
	}
	s->growing = !last;
	return err;
}

void mlk_source_close(struct mlk_source *s)
{
	if (!s->shares)
		mlk_pipe_free(s->stream);
	s->stream = NULL;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int mlk_chunks_open(struct mlk_chunks *c)
{
	uint8_t bytes[MLK_FILE_HEADER];
	int64_t n = source_read(&c->source, 0, bytes, sizeof(bytes));
	int err;

	if (n < 0)
		return (int)n;
	memset(bytes + n, 0, sizeof(bytes) - (size_t)n);
	err = mlk_file_header_unpack(&c->file, bytes);
	/* A file cut within the header is distinguished from one that was never a trace. */
	if (n < MLK_FILE_HEADER)
		return err == MLK_E_MAGIC ? err : MLK_E_EMPTY;
	if (!err)
		mlk_chunks_rewind(c);
	return err;
}

int mlk_chunks_share(struct mlk_chunks *c, const struct mlk_chunks *with)
{
	c->source = with->source;
	c->file = with->file;
	c->source.shares = with->source.stream != NULL;
	mlk_chunks_rewind(c);
	if (c->source.fd < 0)
		return 0;
	c->source.fd = fcntl(with->source.fd, F_DUPFD_CLOEXEC, 0);
	return c->source.fd < 0 ? -errno : 0;
}

void mlk_chunks_rewind(struct mlk_chunks *c)
{
	c->at = c->file.len;
	c->chunk_at = c->at;
	c->next_seq = c->last_ns = 0;
	c->gap = false;
	memset(&c->condition, 0, sizeof(c->condition));
}

/* Room for @len bytes in *buf, which is never NULL then; @len was checked against the format's
 * limits. */
static int reserve(uint8_t **buf, size_t *room, size_t len)
{
	uint8_t *grown;

	if (*buf && len <= *room)
		return 0;
	grown = realloc(*buf, len + 1);
	if (!grown)
		return -ENOMEM;
	*buf = grown;
	*room = len;
	return 0;
}

/* Offset of the next chunk magic at or behind @from, or the end of the source; -errno. */
static int64_t find_magic(struct mlk_chunks *c, uint64_t from)
{
	uint8_t window[16384];

	while (from < c->source.size) {
		int64_t n = source_read(&c->source, from, window, sizeof(window));
		uint8_t *hit;

		if (n < 0)
			return n;
		if (n < MLK_MAGIC_LEN)
			break;
		hit = memmem(window, (size_t)n, mlk_chunk_magic, MLK_MAGIC_LEN);
		if (hit)
			return (int64_t)(from + (uint64_t)(hit - window));
		/* The magic may lie across the window's end. */
		from += (uint64_t)n - (MLK_MAGIC_LEN - 1);
	}
	return (int64_t)c->source.size;
}

int mlk_chunks_header_at(struct mlk_chunks *c, uint64_t at)
{
	uint8_t bytes[MLK_CHUNK_HEADER];
	int64_t n = source_read(&c->source, at, bytes, sizeof(bytes));

	if (n < 0)
		return (int)n;
	return n == MLK_CHUNK_HEADER && mlk_chunk_header_unpack(&c->header, bytes, c->file.salt) &&
	       c->header.stored_len <= c->source.size - at - MLK_CHUNK_HEADER;
}

/* What lay between @from and @to is lost. */
static void lost_between(struct mlk_condition *l, uint64_t from, uint64_t to)
{
	if (!l->lost_to_ns || from < l->lost_from_ns)
		l->lost_from_ns = from;
	if (to > l->lost_to_ns)
		l->lost_to_ns = to;
}

/* Missing chunks lie between the times of the one before and the one behind them. */
static void note_time(struct mlk_chunks *c)
{
	const struct mlk_chunk *h = &c->header;

	if (!h->first_ns)
		return; /* this kind has no time */
	if (c->gap)
		lost_between(&c->condition, c->last_ns ? c->last_ns : c->file.start_ns,
			     h->first_ns);
	c->gap = false;
	if (h->last_ns > c->last_ns)
		c->last_ns = c->condition.last_ns = h->last_ns;
}

/* May what is at @at become a whole chunk when more bytes are there? */
static bool is_unfinished(struct mlk_chunks *c, uint64_t at)
{
	uint8_t bytes[MLK_CHUNK_HEADER];
	uint64_t left = c->source.size - at;

	if (!c->source.growing)
		return false;
	if (left < MLK_CHUNK_HEADER)
		return true;
	return source_read(&c->source, at, bytes, sizeof(bytes)) == MLK_CHUNK_HEADER &&
	       mlk_chunk_header_unpack(&c->header, bytes, c->file.salt) &&
	       c->header.stored_len > left - MLK_CHUNK_HEADER;
}

/* What begins behind @at, and may be a chunk.  Returns its offset or -errno. */
static int64_t find_behind(struct mlk_chunks *c, uint64_t at)
{
	int64_t next = find_magic(c, at + 1);
	int64_t size = (int64_t)c->source.size;

	/* the magic may be there only in part */
	if (c->source.growing && next == size && size - (MLK_MAGIC_LEN - 1) > (int64_t)at)
		next = size - (MLK_MAGIC_LEN - 1);
	return next;
}

int mlk_chunks_next(struct mlk_chunks *c)
{
	uint64_t at = c->at;
	int found = 0;

	while (at < c->source.size) {
		int64_t next;

		found = mlk_chunks_header_at(c, at);
		if (found)
			break;
		if (is_unfinished(c, at)) {
			c->at = at;
			return 0;
		}
		next = find_behind(c, at);
		if (next < 0)
			return (int)next;
		c->condition.bytes_skipped += (uint64_t)next - at;
		at = (uint64_t)next;
	}
	if (found <= 0) {
		c->at = c->source.size;
		return found;
	}
	if (c->header.seq > c->next_seq) {
		c->condition.chunks_lost += c->header.seq - c->next_seq;
		c->condition.lost_always += c->header.seq - c->next_seq;
		c->gap = true;
	}
	note_time(c);
	c->next_seq = c->header.seq + 1;
	c->chunk_at = at;
	c->at = at + MLK_CHUNK_HEADER + c->header.stored_len;
	c->condition.chunks++;
	return 1;
}

void mlk_chunks_damaged(struct mlk_chunks *c)
{
	c->condition.chunks--;
	c->condition.chunks_lost++;
	if (c->header.first_ns)
		lost_between(&c->condition, c->header.first_ns, c->header.last_ns);
}

/* One frame that says its size, and no more than there is room for. */
static int inflate(struct mlk_chunks *c)
{
	const struct mlk_chunk *h = &c->header;
	size_t len;

	if (ZSTD_findFrameCompressedSize(c->stored, h->stored_len) != h->stored_len ||
	    ZSTD_getFrameContentSize(c->stored, h->stored_len) != h->raw_len)
		return MLK_E_CORRUPT;
	len = ZSTD_decompress(c->raw, h->raw_len, c->stored, h->stored_len);
	if (len == h->raw_len)
		return 0;
	return ZSTD_getErrorCode(len) == ZSTD_error_memory_allocation ? -ENOMEM : MLK_E_CORRUPT;
}

int mlk_chunks_fetch(struct mlk_chunks *c)
{
	const struct mlk_chunk *h = &c->header;
	int64_t n = reserve(&c->stored, &c->stored_room, h->stored_len);

	if (!n)
		n = source_read(&c->source, c->chunk_at + MLK_CHUNK_HEADER, c->stored,
				h->stored_len);
	if (n < 0)
		return (int)n;
	if (n != h->stored_len || mlk_crc32(c->stored, h->stored_len) != h->payload_crc)
		return MLK_E_CORRUPT;
	return 0;
}

int mlk_chunks_load(struct mlk_chunks *c)
{
	const struct mlk_chunk *h = &c->header;
	int err = reserve(&c->raw, &c->raw_room, h->raw_len);

	if (!err)
		err = mlk_chunks_fetch(c);
	if (err)
		return err;
	if (h->flags & MLK_CHUNK_ZSTD)
		return inflate(c);
	if (h->raw_len != h->stored_len)
		return MLK_E_CORRUPT;
	if (h->raw_len)
		memcpy(c->raw, c->stored, h->raw_len);
	return 0;
}

void mlk_chunks_release(struct mlk_chunks *c)
{
	mlk_source_close(&c->source);
	free(c->stored);
	free(c->raw);
}
