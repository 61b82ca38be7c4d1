/* chunk_out.c - a queue, and a thread that compresses and writes: one write(2) a chunk */
#include "format/chunk/chunk_out.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/chunk/compress.h"
#include "format/chunk/index.h"

#define QUEUED_MAX 8	    /* chunks of 1 MiB and more */
#define ASK_NS	   50000000 /* between questions whether to give up */

struct job {
	struct mlk_chunk header;
	struct mlk_enc payload;
	bool stored; /* the payload is as it is stored, and the header describes it */
};

struct mlk_chunk_out {
	int fd;
	bool regular; /* it is a file; else another program reads it, or does not */
	ZSTD_CCtx *zstd;
	uint8_t *buf; /* of the thread: a header and the longest stored payload */
	uint64_t seq; /* of the thread, as the index */
	struct mlk_index index;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t changed;
	struct job queue[QUEUED_MAX];
	unsigned int first, nr;	 /* jobs queued; the first is at work and stays until it is done */
	void (*call)(void *arg); /* to be called next; NULL: nothing */
	void *call_arg;
	bool stop;
	bool (*gives_up)(void *arg); /* the caller's alone, as its argument */
	void *patience;
	uint64_t bytes;
	int err;
};

/* Was a file that should have @bytes cut, or written to, by another process? */
static bool was_changed(int fd, uint64_t bytes)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size == bytes)
		return false;
	/* a server may know only after this how long the file is */
	return !fsync(fd) && !fstat(fd, &st) && (uint64_t)st.st_size != bytes;
}

/* Write all of @bytes to @fd, which holds @before; cut it back to that if it cannot take them.
 * Returns 0, the -errno of write(2), or MLK_E_CHANGED: it holds something else. */
static int write_whole(int fd, uint64_t before, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	/* what were written behind a hole could not be read */
	if (was_changed(fd, before))
		return MLK_E_CHANGED;
	while (done < len) {
		ssize_t n = write(fd, bytes + done, len - done);
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		err = n < 0 ? -errno : -EIO;
		if (ftruncate(fd, (off_t)before) == 0)
			(void)lseek(fd, (off_t)before, SEEK_SET);
		return err;
	}
	return 0;
}

int mlk_header_write(int fd, const struct mlk_header *h)
{
	uint8_t bytes[MLK_FILE_HEADER];

	mlk_file_header_pack(bytes, h);
	return write_whole(fd, 0, bytes, sizeof(bytes));
}

/* Write the chunk whose payload, as @h tells, is in its place. */
static int write_stored(struct mlk_chunk_out *o, struct mlk_chunk *h, uint64_t before,
			size_t *written)
{
	const size_t len = MLK_CHUNK_HEADER + h->stored_len;
	int err;

	h->seq = o->seq;
	mlk_chunk_header_pack(o->buf, h);
	err = write_whole(o->fd, before, o->buf, len);
	*written = err ? 0 : len;
	o->seq += !err;
	return err;
}

/* Compress and write one chunk. */
static int write_chunk(struct mlk_chunk_out *o, struct mlk_chunk *h, const struct mlk_enc *content,
		       uint64_t before, size_t *written)
{
	uint8_t *payload = o->buf + MLK_CHUNK_HEADER;
	size_t raw = content->len, stored;

	stored = mlk_compress(o->zstd, payload, MLK_STORED_MAX, content);
	if (ZSTD_isError(stored))
		return -ENOMEM; /* the room suffices by ZSTD_compressBound() */
	h->flags = MLK_CHUNK_ZSTD;
	if (stored >= raw) {
		h->flags = 0;
		stored = raw;
		if (raw)
			memcpy(payload, content->buf, raw);
	}
	h->stored_len = (uint32_t)stored;
	h->raw_len = (uint32_t)raw;
	h->payload_crc = mlk_crc32(payload, stored);
	return write_stored(o, h, before, written);
}

/* Write what the index holds as a chunk. */
static int write_index(struct mlk_chunk_out *o, uint32_t salt, uint64_t before, size_t *written)
{
	struct mlk_chunk h = {.type = MLK_CHUNK_INDEX, .nr_records = 1, .salt = salt};
	struct mlk_enc payload = {0};
	int err = -ENOMEM;

	mlk_index_take(&o->index, before, &payload);
	if (!payload.failed)
		err = write_chunk(o, &h, &payload, before, written);
	mlk_enc_release(&payload);
	return err;
}

/* Write the chunk @job, and the index when it is long. */
static int write_job(struct mlk_chunk_out *o, struct job *job, uint64_t before, size_t *written)
{
	size_t more = 0;
	int err;

	if (job->stored) {
		if (job->payload.len)
			memcpy(o->buf + MLK_CHUNK_HEADER, job->payload.buf, job->payload.len);
		err = write_stored(o, &job->header, before, written);
	} else {
		err = write_chunk(o, &job->header, &job->payload, before, written);
	}
	if (err)
		return err;
	mlk_index_add(&o->index, &job->header, before);
	if (o->index.entries.len < MLK_INDEX_TARGET)
		return 0;
	err = write_index(o, job->header.salt, before + *written, &more);
	*written += more;
	return err;
}

static void *work(void *arg)
{
	struct mlk_chunk_out *o = arg;

	pthread_mutex_lock(&o->lock);
	for (;;) {
		struct job *job = &o->queue[o->first];
		uint64_t before = o->bytes;
		size_t written = 0;
		int err = o->err;

		if (o->call) {
			o->call(o->call_arg);
			o->call = NULL;
			pthread_cond_broadcast(&o->changed);
		}
		if (!o->nr && o->stop)
			break;
		if (!o->nr) {
			pthread_cond_wait(&o->changed, &o->lock);
			continue;
		}
		pthread_mutex_unlock(&o->lock);
		if (!err)
			err = write_job(o, job, before, &written);
		mlk_enc_release(&job->payload);
		pthread_mutex_lock(&o->lock);
		if (!o->err)
			o->err = err;
		o->bytes += written;
		o->first = (o->first + 1) % QUEUED_MAX;
		o->nr--;
		pthread_cond_broadcast(&o->changed);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* Signals are the caller's affair: none must choose this thread. */
static int start_thread(struct mlk_chunk_out *o)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&o->thread, NULL, work, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	o->started = !err;
	return -err;
}

int mlk_chunk_out_new(struct mlk_chunk_out **out, int fd, uint64_t bytes, int zstd_level)
{
	struct mlk_chunk_out *o = calloc(1, sizeof(*o));
	struct stat st;
	int err = -ENOMEM;

	*out = NULL;
	if (!o)
		return -ENOMEM;
	o->fd = fd;
	o->regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
	o->bytes = bytes;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->changed, NULL);
	o->buf = malloc(MLK_CHUNK_HEADER + MLK_STORED_MAX);
	o->zstd = mlk_compressor_new(zstd_level);
	if (o->buf && o->zstd)
		err = start_thread(o);
	if (err)
		mlk_chunk_out_free(o);
	else
		*out = o;
	return err;
}

void mlk_chunk_out_patience(struct mlk_chunk_out *o, bool (*gives_up)(void *arg), void *arg)
{
	o->gives_up = o->regular ? NULL : gives_up;
	o->patience = arg;
}

/* The thread is in a write(2) that nobody may ever end. */
static bool is_given_up(const struct mlk_chunk_out *o)
{
	return o->err == -ECANCELED;
}

/* Wait, with the lock, until something has changed, or it was asked whether to give up. */
static void wait_for_change(struct mlk_chunk_out *o)
{
	struct timespec at;

	if (!o->gives_up) {
		pthread_cond_wait(&o->changed, &o->lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += ASK_NS;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(&o->changed, &o->lock, &at) && !o->err &&
	    o->gives_up(o->patience))
		o->err = -ECANCELED;
}

int mlk_chunk_out_put(struct mlk_chunk_out *o, const struct mlk_chunk *h, struct mlk_enc *payload,
		      bool stored)
{
	const size_t limit = stored ? MLK_STORED_MAX : MLK_RAW_MAX;
	int err = payload->failed ? -ENOMEM : payload->len > limit ? -EINVAL : 0;

	pthread_mutex_lock(&o->lock);
	while (!err && !o->err && o->nr == QUEUED_MAX)
		wait_for_change(o);
	if (!err)
		err = o->err;
	if (!err) {
		o->queue[(o->first + o->nr++) % QUEUED_MAX] =
			(struct job){.header = *h, .payload = *payload, .stored = stored};
		*payload = (struct mlk_enc){0};
		pthread_cond_broadcast(&o->changed);
	}
	pthread_mutex_unlock(&o->lock);
	mlk_enc_release(payload);
	return err;
}

int mlk_chunk_out_last(struct mlk_chunk_out *o, struct mlk_chunk *h, const struct mlk_enc *payload)
{
	size_t written = 0;
	int err;

	/* With nothing queued the thread waits, and what is its own may be used here. */
	if (mlk_chunk_out_error(o, true) == -ECANCELED)
		return -ECANCELED;
	err = payload->failed ? -ENOMEM : write_chunk(o, h, payload, o->bytes, &written);
	if (!err)
		o->bytes += written;
	return err;
}

int mlk_chunk_out_index(struct mlk_chunk_out *o, uint32_t salt, uint64_t *offset)
{
	size_t written = 0;
	int err = mlk_chunk_out_error(o, true);

	*offset = 0;
	if (err || o->index.entries.failed)
		return err;
	err = write_index(o, salt, o->bytes, &written);
	if (err)
		return err;
	*offset = o->bytes;
	o->bytes += written;
	return 0;
}

void mlk_chunk_out_call(struct mlk_chunk_out *o, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&o->lock);
	o->call = fn;
	o->call_arg = arg;
	pthread_cond_broadcast(&o->changed);
	while (o->call && !is_given_up(o))
		pthread_cond_wait(&o->changed, &o->lock);
	pthread_mutex_unlock(&o->lock);
}

int mlk_chunk_out_error(struct mlk_chunk_out *o, bool drained)
{
	int err;

	pthread_mutex_lock(&o->lock);
	while (drained && o->nr && !is_given_up(o))
		wait_for_change(o);
	err = o->err;
	pthread_mutex_unlock(&o->lock);
	return err;
}

bool mlk_chunk_out_is_behind(struct mlk_chunk_out *o)
{
	bool behind;

	if (o->regular)
		return false;
	pthread_mutex_lock(&o->lock);
	behind = !o->err && o->nr >= QUEUED_MAX / 2;
	pthread_mutex_unlock(&o->lock);
	return behind;
}

uint64_t mlk_chunk_out_bytes(struct mlk_chunk_out *o)
{
	uint64_t bytes;

	pthread_mutex_lock(&o->lock);
	bytes = o->bytes;
	pthread_mutex_unlock(&o->lock);
	return bytes;
}

void mlk_chunk_out_free(struct mlk_chunk_out *o)
{
	bool given_up;

	if (!o)
		return;
	if (o->started) {
		pthread_mutex_lock(&o->lock);
		given_up = is_given_up(o);
		o->stop = true;
		pthread_cond_broadcast(&o->changed);
		pthread_mutex_unlock(&o->lock);
		if (given_up) {
			pthread_detach(o->thread); /* it needs all of this until the process ends */
			return;
		}
		pthread_join(o->thread, NULL);
	}
	pthread_cond_destroy(&o->changed);
	pthread_mutex_destroy(&o->lock);
	mlk_enc_release(&o->index.entries);
	ZSTD_freeCCtx(o->zstd);
	free(o->buf);
	free(o);
}
