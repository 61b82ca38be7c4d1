/* copy.c - see copy.h */
#include "format/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "format/chunk/chunk_out.h"
#include "format/event/events.h"
#include "format/reader_state.h"
#include "format/record/records.h"
#include "format/record/unwound.h"

struct mlk_copy {
	struct mlk_chunks from;
	struct mlk_chunk_out *out;
	bool found; /* from.header is that of the next chunk */
	bool drops; /* registers and stacks */
	int level;
};

int mlk_copy_new(struct mlk_copy **out, const struct mlk_reader *from, int fd, int zstd_level)
{
	struct mlk_copy *copy = calloc(1, sizeof(*copy));
	struct mlk_header header = from->chunks.file;
	int err;

	*out = NULL;
	if (!copy)
		return -ENOMEM;
	/* of this version, for the same chunks */
	header.len = MLK_FILE_HEADER;
	if (header.minor < MLK_MINOR)
		header.minor = MLK_MINOR;
	copy->level = zstd_level;
	err = mlk_chunks_share(&copy->from, &from->chunks);
	if (!err)
		err = mlk_header_write(fd, &header);
	if (!err)
		err = mlk_chunk_out_new(&copy->out, fd, MLK_FILE_HEADER, zstd_level);
	if (err)
		mlk_copy_free(copy);
	else
		*out = copy;
	return err;
}

/* Find the next chunk, which may have been found before.  Returns 1, 0 at the end, or -errno. */
static int find(struct mlk_copy *copy)
{
	int got = copy->found ? 1 : mlk_chunks_next(&copy->from);

	copy->found = got > 0;
	return got;
}

void mlk_copy_drop_raw(struct mlk_copy *copy)
{
	copy->drops = true;
}

/* Copy META with a field that says that stacks were dropped. */
static int copy_meta(struct mlk_copy *copy)
{
	struct mlk_enc payload = {0};
	int err = mlk_chunks_load(&copy->from);

	if (err)
		return err;
	mlk_enc_bytes(&payload, copy->from.raw, copy->from.header.raw_len);
	mlk_enc_uvar(&payload, MLK_META_DROPPED);
	mlk_enc_uvar(&payload, 1);
	mlk_enc_uvar(&payload, 1);
	return mlk_chunk_out_put(copy->out, &copy->from.header, &payload, false);
}

/* Copy the chunk that was found. */
static int copy_chunk(struct mlk_copy *copy)
{
	const struct mlk_chunk *h = &copy->from.header;
	struct mlk_enc stored = {0};
	int err;

	copy->found = false;
	if (h->type == MLK_CHUNK_INDEX || h->type == MLK_CHUNK_UNWOUND)
		return 0;
	if (copy->drops && h->type == MLK_CHUNK_STACKS)
		return 0;
	if (copy->drops && h->type == MLK_CHUNK_META)
		return copy_meta(copy);
	err = mlk_chunks_fetch(&copy->from);
	if (err)
		return err;
	mlk_enc_bytes(&stored, copy->from.stored, h->stored_len);
	return mlk_chunk_out_put(copy->out, h, &stored, true);
}

int mlk_copy_until(struct mlk_copy *copy, uint64_t offset)
{
	int got, err = 0;

	while (!err && (got = find(copy)) != 0) {
		if (got < 0)
			return got;
		if (copy->from.chunk_at >= offset || copy->from.header.type == MLK_CHUNK_END)
			break;
		err = copy_chunk(copy);
	}
	return err;
}

/* The heads of the chunk of events that was loaded, encoded as a chunk whose events have no stacks.
 * to->failed is set if memory runs out.  Returns 0, -ENOMEM, -EINVAL or MLK_E_CORRUPT. */
static int encode_heads(const struct mlk_copy *copy, struct mlk_enc *to)
{
	const struct mlk_chunk *h = &copy->from.header;
	struct mlk_dec dec = {.at = copy->from.raw, .end = copy->from.raw + h->raw_len};
	struct mlk_encoder encoder = {.filter.mode =
					      (enum mlk_stack_mode)copy->from.file.stack_mode};
	struct mlk_decoder decoder = {0};
	struct mlk_event event = {0};
	int err = mlk_decoder_begin(&decoder, &dec, h->first_ns, true);

	mlk_encoder_begin(&encoder, h->first_ns);
	while (!err && mlk_decoder_more(&decoder)) {
		err = mlk_decoder_next_head(&decoder, &event);
		event.nr_regs = MLK_SP_REG + 1; /* the least: all are 0 */
		if (!err)
			err = mlk_encoder_add(&encoder, &event);
	}
	if (!err)
		mlk_encoder_finish(&encoder, to);
	mlk_encoder_release(&encoder);
	mlk_decoder_release(&decoder);
	return err;
}

/* @raw compressed into @stored, of which *@h tells then. */
static int compress(struct mlk_chunk *h, const struct mlk_enc *raw, int level,
		    struct mlk_enc *stored)
{
	size_t room = ZSTD_compressBound(raw->len), len;
	uint8_t *bytes = raw->failed ? NULL : malloc(room);

	if (!bytes)
		return -ENOMEM;
	len = ZSTD_compress(bytes, room, raw->buf, raw->len, level);
	h->flags = MLK_CHUNK_ZSTD;
	h->raw_len = (uint32_t)raw->len;
	if (ZSTD_isError(len) || len >= raw->len) {
		h->flags = 0;
		len = raw->len;
	}
	mlk_enc_bytes(stored, h->flags ? bytes : raw->buf, len);
	free(bytes);
	h->stored_len = (uint32_t)len;
	h->payload_crc = stored->failed ? 0 : mlk_crc32(stored->buf, len);
	return stored->failed ? -ENOMEM : 0;
}

/* What takes the place of the chunk of events that was loaded: *@h and its payload. */
static int drop_stacks(struct mlk_copy *copy, struct mlk_chunk *h, struct mlk_enc *stored)
{
	struct mlk_enc raw = {0};
	int err = encode_heads(copy, &raw);

	if (!err)
		err = compress(h, &raw, copy->level, stored);
	mlk_enc_release(&raw);
	return err;
}

int mlk_copy_unwound(struct mlk_copy *copy, const struct mlk_unwound *unwound)
{
	struct mlk_unwound about = *unwound;
	struct mlk_chunk h = {.type = MLK_CHUNK_UNWOUND, .nr_records = 1};
	const struct mlk_chunk *events = &copy->from.header;
	struct mlk_enc payload = {0}, stored = {0};
	struct mlk_chunk heads;
	struct mlk_dec dec;
	int err = find(copy);

	if (err < 0)
		return err;
	if (!err || events->type != MLK_CHUNK_EVENTS)
		return MLK_E_CORRUPT;
	err = mlk_chunks_load(&copy->from);
	if (err)
		return err;
	heads = *events;
	dec = (struct mlk_dec){.at = copy->from.raw, .end = copy->from.raw + events->raw_len};
	/* It has no time: what a reader makes of times is about the chunks that were recorded. */
	h.salt = events->salt;
	h.lost_allocs = events->lost_allocs;
	h.lost_frees = events->lost_frees;
	h.lost_others = events->lost_others;
	about.first_ns = events->first_ns;
	if (copy->drops)
		err = drop_stacks(copy, &heads, &stored);
	about.events_crc = heads.payload_crc;
	if (!err)
		err = mlk_unwound_encode(&payload, &about, &dec);
	if (!err)
		err = mlk_chunk_out_put(copy->out, &h, &payload, false);
	else
		mlk_enc_release(&payload);
	if (!err && copy->drops) {
		copy->found = false;
		err = mlk_chunk_out_put(copy->out, &heads, &stored, true);
	} else {
		mlk_enc_release(&stored);
	}
	return err;
}

/* The END that was found, and nothing behind it, with where the index is. */
static int copy_end(struct mlk_copy *copy)
{
	struct mlk_chunk h = copy->from.header;
	struct mlk_ending end;
	uint64_t index;
	struct mlk_enc payload = {0};
	struct mlk_dec dec;
	int err = mlk_chunks_load(&copy->from);

	dec = (struct mlk_dec){.at = copy->from.raw, .end = copy->from.raw + h.raw_len};
	if (!err)
		err = mlk_decode_end(&dec, &end);
	if (!err)
		err = mlk_chunks_next(&copy->from);
	if (err)
		return err < 0 ? err : MLK_E_CORRUPT;
	err = mlk_chunk_out_index(copy->out, h.salt, &index);
	if (err)
		return err;
	mlk_end_encode(&payload, &end, index);
	err = mlk_chunk_out_last(copy->out, &h, &payload);
	mlk_enc_release(&payload);
	return err;
}

int mlk_copy_finish(struct mlk_copy *copy)
{
	int err = mlk_copy_until(copy, UINT64_MAX);

	/* a trace that was cut has no END, and the copy says so, too */
	if (!err && copy->found)
		return copy_end(copy);
	return err ? err : mlk_chunk_out_error(copy->out, true);
}

uint64_t mlk_copy_bytes(const struct mlk_copy *copy)
{
	return mlk_chunk_out_bytes(copy->out);
}

void mlk_copy_free(struct mlk_copy *copy)
{
	if (!copy)
		return;
	mlk_chunk_out_free(copy->out);
	mlk_chunks_release(&copy->from);
	free(copy);
}
