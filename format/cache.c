/* cache.c - see cache.h: another header before UNWOUND chunks as a trace may have them */
#include "format/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"
#include "format/chunk/compress.h"
#include "format/reader_state.h"
#include "format/record/unwound.h"

static const uint8_t cache_magic[MLK_MAGIC_LEN] = {0xf5, 'M', 'L', 'S', 0x0d, 0x0a, 0x1a, 0x0a};

static void pack_header(uint8_t *to, const struct mlk_header *h, const struct mlk_cache_key *key)
{
	memset(to, 0, MLK_FILE_HEADER);
	memcpy(to, cache_magic, MLK_MAGIC_LEN);
	mlk_put_u16(to + 8, MLK_MAJOR);
	mlk_put_u16(to + 10, MLK_MINOR);
	mlk_put_u32(to + 12, MLK_FILE_HEADER);
	mlk_put_u64(to + 16, key->trace);
	mlk_put_u64(to + 24, key->unwinder);
	mlk_put_u32(to + 32, h->salt);
	mlk_put_u32(to + 36, h->stack_mode);
	mlk_put_u64(to + 40, h->realtime_ns);
	mlk_put_u64(to + 48, h->start_ns);
	mlk_put_u32(to + 60, mlk_crc32(to, 60));
}

static int unpack_header(struct mlk_header *h, struct mlk_cache_key *key, const uint8_t *from)
{
	if (memcmp(from, cache_magic, MLK_MAGIC_LEN))
		return MLK_E_MAGIC;
	if (mlk_get_u32(from + 60) != mlk_crc32(from, 60))
		return MLK_E_HEADER;
	*h = (struct mlk_header){
		.major = mlk_get_u16(from + 8),
		.minor = mlk_get_u16(from + 10),
		.len = mlk_get_u32(from + 12),
		.salt = mlk_get_u32(from + 32),
		.stack_mode = mlk_get_u32(from + 36),
		.realtime_ns = mlk_get_u64(from + 40),
		.start_ns = mlk_get_u64(from + 48),
	};
	*key = (struct mlk_cache_key){mlk_get_u64(from + 16), mlk_get_u64(from + 24)};
	/* one of another version is made anew */
	if (h->major != MLK_MAJOR || h->minor != MLK_MINOR)
		return MLK_E_VERSION;
	return h->len == MLK_FILE_HEADER ? 0 : MLK_E_HEADER;
}

/* Read the header of the file open as @fd.  Returns 0, -errno, or as unpack_header(). */
static int read_header(int fd, struct mlk_header *h, struct mlk_cache_key *key)
{
	uint8_t bytes[MLK_FILE_HEADER] = {0};
	ssize_t got = pread(fd, bytes, sizeof(bytes), 0);

	return got < 0 ? -errno : unpack_header(h, key, bytes);
}

void mlk_cache_remove(int dir, const char *name)
{
	char cache[NAME_MAX + 1];
	struct stat st;
	int fd;

	if (snprintf(cache, sizeof(cache), "%s" MLK_CACHE_SUFFIX, name) >= (int)sizeof(cache))
		return;
	fd = openat(dir, cache, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size &&
	    mlk_cache_check(fd))
		unlinkat(dir, cache, 0);
	close(fd);
}

bool mlk_cache_check(int fd)
{
	uint8_t bytes[MLK_MAGIC_LEN];
	ssize_t got = pread(fd, bytes, sizeof(bytes), 0);

	return got >= 0 && !memcmp(bytes, cache_magic, (size_t)got);
}

int mlk_cache_open(struct mlk_reader **out, int fd, struct mlk_cache_key *key)
{
	struct mlk_source source;
	struct mlk_reader *r;
	int err = mlk_source_take(&source, fd);

	*out = NULL;
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		mlk_source_close(&source);
		return -ENOMEM;
	}
	r->chunks.source = source;
	r->meta.command = r->meta.exe = r->meta.comm = r->meta.hostname = "";
	r->meta.kernel = r->meta.machine = r->meta.recorder = r->meta.backend = "";
	r->meta_read = true; /* a cache says nothing of that */
	err = read_header(fd, &r->chunks.file, key);
	if (err) {
		mlk_reader_free(r);
		return err;
	}
	mlk_reader_rewind(r, MLK_RECORD_UNWOUND);
	*out = r;
	return 0;
}

struct mlk_cache_encoder {
	ZSTD_CCtx *zstd;
};

int mlk_cache_encoder_new(struct mlk_cache_encoder **out, int zstd_level)
{
	struct mlk_cache_encoder *encoder = *out = calloc(1, sizeof(*encoder));

	if (!encoder)
		return -ENOMEM;
	encoder->zstd = mlk_compressor_new(zstd_level);
	if (encoder->zstd)
		return 0;
	mlk_cache_encoder_free(encoder);
	*out = NULL;
	return -ENOMEM;
}

static int make_room(struct mlk_cached *cached, size_t raw_len)
{
	const size_t room = MLK_CHUNK_HEADER + ZSTD_compressBound(raw_len);
	uint8_t *bytes;

	if (room <= cached->room)
		return 0;
	bytes = realloc(cached->bytes, room);
	if (!bytes)
		return -ENOMEM;
	cached->bytes = bytes;
	cached->room = room;
	return 0;
}

/* Compress @payload into @cached, whose header gets what tells of that. */
static int store_payload(struct mlk_cache_encoder *encoder, const struct mlk_enc *payload,
			 struct mlk_cached *cached)
{
	struct mlk_chunk *h = &cached->header;
	size_t stored;
	int err = payload->failed ? -ENOMEM : payload->len > MLK_RAW_MAX ? -EINVAL : 0;

	if (!err)
		err = make_room(cached, payload->len);
	if (err)
		return err;
	stored = mlk_compress(encoder->zstd, cached->bytes + MLK_CHUNK_HEADER,
			      cached->room - MLK_CHUNK_HEADER, payload);
	if (ZSTD_isError(stored))
		return -ENOMEM; /* the room suffices by ZSTD_compressBound() */
	h->flags = MLK_CHUNK_ZSTD;
	h->stored_len = (uint32_t)stored;
	h->raw_len = (uint32_t)payload->len;
	h->payload_crc = mlk_crc32(cached->bytes + MLK_CHUNK_HEADER, stored);
	return 0;
}

int mlk_cache_encode(struct mlk_cache_encoder *encoder, const struct mlk_reader *trace,
		     const struct mlk_unwound *unwound, struct mlk_cached *cached)
{
	const struct mlk_chunk *events = &trace->chunks.header;
	struct mlk_dec dec = {.at = trace->chunks.raw, .end = trace->chunks.raw + events->raw_len};
	struct mlk_unwound about = *unwound;
	struct mlk_enc payload = {0};
	int err;

	cached->ready = false;
	cached->header = (struct mlk_chunk){
		.type = MLK_CHUNK_UNWOUND, .nr_records = 1, .salt = events->salt};
	about.events_crc = events->payload_crc;
	about.first_ns = events->first_ns;
	err = mlk_unwound_encode(&payload, &about, &dec);
	if (!err)
		err = store_payload(encoder, &payload, cached);
	mlk_enc_release(&payload);
	cached->ready = !err;
	return err;
}

void mlk_cached_release(struct mlk_cached *cached)
{
	free(cached->bytes);
	*cached = (struct mlk_cached){0};
}

void mlk_cache_encoder_free(struct mlk_cache_encoder *encoder)
{
	if (!encoder)
		return;
	ZSTD_freeCCtx(encoder->zstd);
	free(encoder);
}

/* Returns 0 or -errno. */
static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int mlk_cache_begin(int fd, const struct mlk_reader *trace, const struct mlk_cache_key *key)
{
	uint8_t bytes[MLK_FILE_HEADER];

	pack_header(bytes, &trace->chunks.file, key);
	return write_all(fd, bytes, sizeof(bytes));
}

int mlk_cache_append(int fd, uint64_t seq, struct mlk_cached *cached)
{
	cached->header.seq = seq;
	mlk_chunk_header_pack(cached->bytes, &cached->header);
	return write_all(fd, cached->bytes, MLK_CHUNK_HEADER + cached->header.stored_len);
}

int mlk_cache_copy(int fd, const struct mlk_reader *cache, uint64_t len)
{
	const size_t room = 1 << 20;
	uint8_t *bytes = malloc(room);
	uint64_t at = 0;
	int err = bytes ? 0 : -ENOMEM;

	while (!err && at < len) {
		ssize_t n = pread(cache->chunks.source.fd, bytes,
				  len - at < room ? (size_t)(len - at) : room, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : -EIO;
			break;
		}
		at += (uint64_t)n;
		err = write_all(fd, bytes, (size_t)n);
	}
	free(bytes);
	return err;
}

int mlk_cache_put_own(int fd, struct mlk_cache_encoder *encoder, const struct mlk_reader *trace,
		      uint64_t seq, unsigned int kind, const void *bytes, size_t len)
{
	struct mlk_cached cached = {.header = {.type = (uint16_t)(MLK_CACHE_OWN + kind),
					       .nr_records = 1,
					       .salt = trace->chunks.file.salt}};
	struct mlk_enc payload = {0};
	int err = 0;

	for (size_t at = 0; !err && at < len; at += payload.len) {
		const size_t rest = len - at;

		payload.len = 0;
		mlk_enc_bytes(&payload, (const uint8_t *)bytes + at,
			      rest < MLK_CACHE_PIECE ? rest : MLK_CACHE_PIECE);
		err = store_payload(encoder, &payload, &cached);
		if (!err)
			err = mlk_cache_append(fd, seq++, &cached);
	}
	mlk_enc_release(&payload);
	mlk_cached_release(&cached);
	return err;
}

int mlk_cache_get_own(struct mlk_reader *cache, const struct mlk_entry *entry,
		      const uint8_t **bytes, size_t *len)
{
	int err = mlk_reader_seek(cache, entry, 0);

	cache->step = STEP_END;
	if (!err && cache->chunks.header.raw_len > MLK_CACHE_PIECE)
		err = MLK_E_CORRUPT; /* no writer makes such */
	if (!err)
		err = mlk_chunks_load(&cache->chunks);
	*bytes = err ? NULL : cache->chunks.raw;
	*len = err ? 0 : cache->chunks.header.raw_len;
	return err;
}
