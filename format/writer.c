/* writer.c - chunks onto a file: one write(2) each, and never half a chunk left behind */
#include "format/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>

#include "format/chunk.h"
#include "format/events.h"

/* zstd-1 takes 0.7 us for a stack of 1 KiB; higher levels gain a few percent on such data. */
#define ZSTD_LEVEL 1

struct mlk_writer {
	int fd;
	int err; /* of the write that failed; sticky */
	uint32_t salt;
	uint64_t seq, bytes;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* room for a header and the longest stored payload */
	struct mlk_losses losses, losses_written;
	/* the EVENTS chunk being filled */
	struct mlk_enc events;
	struct mlk_coder coder;
	uint32_t nr_events;
	uint64_t first_ns, last_ns;
};

/* Write all of @len bytes; a file that could not take them is cut back to what it was. */
static int write_whole(struct mlk_writer *w, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(w->fd, bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			w->err = n < 0 ? -errno : -EIO;
			if (ftruncate(w->fd, (off_t)w->bytes) == 0)
				(void)lseek(w->fd, (off_t)w->bytes, SEEK_SET);
			return w->err;
		}
		done += (size_t)n;
	}
	w->bytes += len;
	return 0;
}

static void count_losses(const struct mlk_losses *l, struct mlk_chunk_header *h)
{
	h->lost_allocs = l->count[MLK_LOST_ALLOC];
	h->lost_frees = l->count[MLK_LOST_FREE] + l->count[MLK_LOST_RELEASE];
	for (int i = 0; i < MLK_LOSS_NR; i++)
		h->lost_others += l->count[i];
	h->lost_others -= h->lost_allocs + h->lost_frees;
}

/* Compress @raw and write it as one chunk; @h comes with type, times and number of records. */
static int write_chunk(struct mlk_writer *w, struct mlk_chunk_header *h, const struct mlk_enc *raw)
{
	uint8_t *payload = w->out + MLK_CHUNK_HEADER;
	size_t stored;

	if (w->err)
		return w->err;
	if (raw->failed)
		return -ENOMEM;
	if (raw->len > MLK_RAW_MAX)
		return -EINVAL;
	stored =
		ZSTD_compressCCtx(w->zstd, payload, MLK_STORED_MAX, raw->buf, raw->len, ZSTD_LEVEL);
	if (ZSTD_isError(stored))
		return -ENOMEM; /* the room suffices by ZSTD_compressBound() */
	h->flags = MLK_CHUNK_ZSTD;
	if (stored >= raw->len) {
		h->flags = 0;
		stored = raw->len;
		if (stored)
			memcpy(payload, raw->buf, stored);
	}
	h->salt = w->salt;
	h->seq = w->seq;
	h->stored_len = (uint32_t)stored;
	h->raw_len = (uint32_t)raw->len;
	h->payload_crc = mlk_crc32(payload, stored);
	count_losses(&w->losses, h);
	mlk_chunk_header_pack(w->out, h);
	if (write_whole(w, w->out, MLK_CHUNK_HEADER + stored))
		return w->err;
	w->seq++;
	return 0;
}

/* A chunk of one record at one moment. */
static int write_single(struct mlk_writer *w, enum mlk_chunk_type type, uint64_t time_ns,
			struct mlk_enc *raw)
{
	struct mlk_chunk_header h = {
		.type = type, .first_ns = time_ns, .last_ns = time_ns, .nr_records = 1};
	int err = write_chunk(w, &h, raw);

	mlk_enc_release(raw);
	return err;
}

static void meta_str(struct mlk_enc *e, unsigned int tag, const char *s)
{
	if (!s || !*s)
		return;
	mlk_enc_uvar(e, tag);
	mlk_enc_str(e, s);
}

static void meta_num(struct mlk_enc *e, unsigned int tag, uint64_t value)
{
	struct mlk_enc field = {0};

	mlk_enc_uvar(&field, value);
	mlk_enc_uvar(e, tag);
	mlk_enc_uvar(e, field.len);
	mlk_enc_bytes(e, field.buf, field.len);
	e->failed |= field.failed;
	mlk_enc_release(&field);
}

static int write_meta(struct mlk_writer *w, const struct mlk_meta *m)
{
	struct mlk_enc e = {0};

	meta_str(&e, 1, m->command);
	meta_str(&e, 2, m->exe);
	meta_str(&e, 3, m->comm);
	meta_str(&e, 4, m->hostname);
	meta_str(&e, 5, m->kernel);
	meta_str(&e, 6, m->machine);
	meta_str(&e, 7, m->recorder);
	meta_str(&e, 8, m->backend);
	meta_num(&e, 9, m->tgid);
	meta_num(&e, 10, m->stack_limit);
	meta_num(&e, 11, m->whole_life);
	return write_single(w, MLK_CHUNK_META, m->start_ns, &e);
}

static int write_file_header(struct mlk_writer *w, const struct mlk_meta *m)
{
	uint8_t bytes[MLK_FILE_HEADER];
	struct mlk_file_header h = {
		.major = MLK_MAJOR,
		.minor = MLK_MINOR,
		.header_len = MLK_FILE_HEADER,
		.salt = w->salt,
		.realtime_ns = m->realtime_ns,
		.start_ns = m->start_ns,
	};

	mlk_file_header_pack(bytes, &h);
	return write_whole(w, bytes, sizeof(bytes));
}

static bool too_long(const char *s)
{
	return s && strlen(s) > MLK_MAX_STRING;
}

int mlk_writer_open(struct mlk_writer **out, int fd, const struct mlk_meta *meta)
{
	struct mlk_writer *w;
	int err = -ENOMEM;

	*out = NULL;
	if (too_long(meta->command) || too_long(meta->exe) || too_long(meta->comm) ||
	    too_long(meta->hostname) || too_long(meta->kernel) || too_long(meta->machine) ||
	    too_long(meta->recorder) || too_long(meta->backend))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->out = malloc(MLK_CHUNK_HEADER + MLK_STORED_MAX);
	w->zstd = ZSTD_createCCtx();
	if (!w->out || !w->zstd)
		goto fail;
	if (getrandom(&w->salt, sizeof(w->salt), 0) != (ssize_t)sizeof(w->salt)) {
		err = -errno;
		goto fail;
	}
	err = write_file_header(w, meta);
	if (!err)
		err = write_meta(w, meta);
	if (err)
		goto fail;
	*out = w;
	return 0;
fail:
	mlk_writer_free(w);
	return err;
}

static int flush_events(struct mlk_writer *w)
{
	struct mlk_chunk_header h = {
		.type = MLK_CHUNK_EVENTS,
		.first_ns = w->first_ns,
		.last_ns = w->last_ns,
		.nr_records = w->nr_events,
	};
	int err;

	if (!w->nr_events)
		return w->err;
	err = write_chunk(w, &h, &w->events);
	w->events.len = 0;
	w->nr_events = 0;
	return err;
}

int mlk_writer_event(struct mlk_writer *w, const struct mlk_event *event)
{
	int err;

	if (w->err)
		return w->err;
	if (!w->nr_events) {
		w->first_ns = event->time_ns;
		mlk_coder_begin(&w->coder, w->first_ns);
	}
	err = mlk_events_encode(&w->coder, &w->events, event);
	if (err) {
		/* What was half encoded must not be written: -ENOMEM is final, -EINVAL left
		 * nothing. */
		if (err != -EINVAL)
			w->err = err;
		return err;
	}
	w->nr_events++;
	w->last_ns = event->time_ns;
	return w->events.len >= MLK_RAW_TARGET ? flush_events(w) : 0;
}

int mlk_writer_maps(struct mlk_writer *w, const struct mlk_maps *maps)
{
	struct mlk_enc e = {0};
	uint64_t before = 0;

	mlk_enc_uvar(&e, maps->tgid);
	mlk_enc_u64(&e, maps->time_ns);
	mlk_enc_uvar(&e, maps->nr);
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->mappings[i];

		if (m->start < before || m->end < m->start || too_long(m->path)) {
			mlk_enc_release(&e);
			return -EINVAL;
		}
		mlk_enc_uvar(&e, m->start - before);
		mlk_enc_uvar(&e, m->end - m->start);
		mlk_enc_uvar(&e, m->offset);
		mlk_enc_u8(&e, (uint8_t)m->perms);
		mlk_enc_uvar(&e, m->dev_major);
		mlk_enc_uvar(&e, m->dev_minor);
		mlk_enc_uvar(&e, m->inode);
		mlk_enc_id(&e, &m->id);
		mlk_enc_str(&e, m->path);
		before = m->end;
	}
	return write_single(w, MLK_CHUNK_MAPS, maps->time_ns, &e);
}

int mlk_writer_threads(struct mlk_writer *w, const struct mlk_thread *threads, size_t nr)
{
	struct mlk_enc e = {0};

	mlk_enc_uvar(&e, nr);
	for (size_t i = 0; i < nr; i++) {
		mlk_enc_uvar(&e, threads[i].tgid);
		mlk_enc_uvar(&e, threads[i].tid);
		mlk_enc_str(&e, threads[i].name);
	}
	return write_single(w, MLK_CHUNK_THREADS, 0, &e);
}

int mlk_writer_module(struct mlk_writer *w, const struct mlk_id *id, const char *path,
		      const uint8_t *image, uint64_t image_len)
{
	uint64_t done = 0;

	if (!id->len || id->len > MLK_MAX_ID || too_long(path) || image_len > MLK_MAX_IMAGE)
		return -EINVAL;
	do {
		uint64_t left = image_len - done;
		uint64_t piece = left < MLK_RAW_TARGET ? left : MLK_RAW_TARGET;
		struct mlk_enc e = {0};
		int err;

		mlk_enc_id(&e, id);
		mlk_enc_str(&e, path);
		mlk_enc_uvar(&e, image_len);
		mlk_enc_uvar(&e, done);
		mlk_enc_uvar(&e, piece);
		mlk_enc_bytes(&e, image + done, (size_t)piece);
		err = write_single(w, MLK_CHUNK_MODULE, 0, &e);
		if (err)
			return err;
		done += piece;
	} while (done < image_len);
	return 0;
}

void mlk_writer_set_losses(struct mlk_writer *w, const struct mlk_losses *losses)
{
	w->losses = *losses;
}

static int write_losses(struct mlk_writer *w)
{
	struct mlk_enc e = {0};

	mlk_enc_uvar(&e, MLK_LOSS_NR);
	for (int i = 0; i < MLK_LOSS_NR; i++)
		mlk_enc_uvar(&e, w->losses.count[i]);
	w->losses_written = w->losses;
	return write_single(w, MLK_CHUNK_LOSSES, w->last_ns, &e);
}

int mlk_writer_flush(struct mlk_writer *w)
{
	int err = flush_events(w);

	if (!err && memcmp(&w->losses, &w->losses_written, sizeof(w->losses)))
		err = write_losses(w);
	return err;
}

int mlk_writer_finish(struct mlk_writer *w, enum mlk_end reason, uint64_t time_ns)
{
	struct mlk_enc e = {0};
	int err = mlk_writer_flush(w);

	if (err)
		return err;
	mlk_enc_u8(&e, (uint8_t)reason);
	mlk_enc_u64(&e, time_ns);
	return write_single(w, MLK_CHUNK_END, time_ns, &e);
}

uint64_t mlk_writer_bytes(const struct mlk_writer *w)
{
	return w->bytes;
}

void mlk_writer_free(struct mlk_writer *w)
{
	if (!w)
		return;
	ZSTD_freeCCtx(w->zstd);
	free(w->out);
	mlk_enc_release(&w->events);
	mlk_coder_release(&w->coder);
	free(w);
}
