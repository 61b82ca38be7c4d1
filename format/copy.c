/* copy.c - see copy.h */
#include "format/copy.h"

#include <errno.h>
#include <stdlib.h>

#include "format/chunk/chunk_out.h"
#include "format/event/events.h"
#include "format/reader_state.h"
#include "format/record/records.h"
#include "format/record/summary_state.h"
#include "format/record/unwound.h"

struct mlk_copy {
	struct mlk_chunks from;
	struct mlk_chunk_out *out;
	bool found; /* from.header is that of the next chunk */
	enum mlk_copy_drops drops;
};

int mlk_copy_new(struct mlk_copy **out, const struct mlk_reader *from, int fd, int zstd_level,
		 enum mlk_copy_drops drops)
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
	copy->drops = drops;
	if (drops)
		header.required |= MLK_REQUIRED_SUMMARIES;
	/* of the recorder's coding nothing stays but overruns, so older readers may read it */
	if (drops && !mlk_reader_meta(from)->guarded)
		header.required &= ~(uint64_t)(MLK_REQUIRED_RECENT | MLK_REQUIRED_DISTANCES);
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

/* Copy META with a field that says that stacks were dropped. */
static int copy_meta(struct mlk_copy *copy)
{
	struct mlk_enc payload = {0};
	int err = mlk_chunks_load(&copy->from);

	if (err)
		return err;
	/* of two fields with one tag the first counts */
	mlk_enc_uvar(&payload, MLK_META_DROPPED);
	mlk_enc_uvar(&payload, 1);
	mlk_enc_uvar(&payload, MLK_DROPPED_ALL);
	mlk_enc_bytes(&payload, copy->from.raw, copy->from.header.raw_len);
	return mlk_chunk_out_put(copy->out, &copy->from.header, &payload, false);
}

/* Is a chunk of @type left out? */
static bool is_dropped(const struct mlk_copy *copy, unsigned int type)
{
	switch (type) {
	case MLK_CHUNK_INDEX:
	case MLK_CHUNK_UNWOUND:
		return true;
	case MLK_CHUNK_EVENTS:
	case MLK_CHUNK_STACKS:
	case MLK_CHUNK_POINTERS: /* of use with the blocks' addresses alone */
	case MLK_CHUNK_PASS:
	case MLK_CHUNK_HEAP:
	case MLK_CHUNK_SMAPS:
		return copy->drops != MLK_COPY_ALL;
	case MLK_CHUNK_MODULE:
		return copy->drops == MLK_COPY_DROP_MODULES;
	default:
		return false;
	}
}

/* Copy the chunk that was found. */
static int copy_chunk(struct mlk_copy *copy)
{
	const struct mlk_chunk *h = &copy->from.header;
	struct mlk_enc stored = {0};
	int err;

	copy->found = false;
	if (is_dropped(copy, h->type))
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

int mlk_copy_unwound(struct mlk_copy *copy, const struct mlk_unwound *unwound)
{
	struct mlk_unwound about = *unwound;
	struct mlk_chunk h = {.type = MLK_CHUNK_UNWOUND, .nr_records = 1};
	const struct mlk_chunk *events = &copy->from.header;
	struct mlk_enc payload = {0};
	struct mlk_dec dec;
	int err = find(copy);

	if (err < 0)
		return err;
	if (!err || events->type != MLK_CHUNK_EVENTS)
		return MLK_E_CORRUPT;
	err = mlk_chunks_load(&copy->from);
	if (err)
		return err;
	dec = (struct mlk_dec){.at = copy->from.raw, .end = copy->from.raw + events->raw_len};
	/* It has no time: what a reader makes of times is about the chunks that were recorded. */
	h.salt = events->salt;
	h.lost_allocs = events->lost_allocs;
	h.lost_frees = events->lost_frees;
	h.lost_others = events->lost_others;
	about.events_crc = events->payload_crc;
	about.first_ns = events->first_ns;
	err = mlk_unwound_encode(&payload, &about, &dec);
	if (!err)
		return mlk_chunk_out_put(copy->out, &h, &payload, false);
	mlk_enc_release(&payload);
	return err;
}

/* A chunk of @type with @payload, which is taken over. */
static int put_new(struct mlk_copy *copy, unsigned int type, struct mlk_chunk h,
		   struct mlk_enc *payload)
{
	const struct mlk_chunk *last = &copy->from.header;

	h.type = (uint16_t)type;
	h.salt = copy->from.file.salt;
	h.lost_allocs = last->lost_allocs;
	h.lost_frees = last->lost_frees;
	h.lost_others = last->lost_others;
	return mlk_chunk_out_put(copy->out, &h, payload, false);
}

int mlk_copy_summary(struct mlk_copy *copy, const struct mlk_summary *summary,
		     const struct mlk_unwound *unwound)
{
	const struct mlk_chunk h = {
		.first_ns = summary->first_ns,
		.last_ns = summary->last_ns,
		.nr_records = (uint32_t)summary->nr_events,
	};
	struct mlk_enc payload = {0};
	int err = mlk_summary_encode(&payload, copy->from.file.stack_mode, summary, unwound);

	if (!err)
		return put_new(copy, MLK_CHUNK_EVENTS, h, &payload);
	mlk_enc_release(&payload);
	return err;
}

int mlk_copy_module(struct mlk_copy *copy, const struct mlk_module *module)
{
	const struct mlk_chunk h = {.nr_records = 1};
	uint64_t done = 0;

	do {
		struct mlk_enc payload = {0};
		int err = mlk_module_piece(&payload, module, &done);

		if (!err)
			err = put_new(copy, MLK_CHUNK_MODULE, h, &payload);
		if (err)
			return err;
	} while (done < module->image_len);
	return 0;
}

/* END with header @h and what @end says, behind the index. */
static int put_end(struct mlk_copy *copy, struct mlk_chunk h, const struct mlk_ending *end)
{
	struct mlk_enc payload = {0};
	uint64_t index;
	int err = mlk_chunk_out_index(copy->out, h.salt, &index);

	if (err)
		return err;
	mlk_end_encode(&payload, end, index);
	err = mlk_chunk_out_last(copy->out, &h, &payload);
	mlk_enc_release(&payload);
	return err;
}

/* The END that was found, and nothing behind it, with where the index is. */
static int copy_end(struct mlk_copy *copy)
{
	struct mlk_chunk h = copy->from.header;
	struct mlk_ending end;
	struct mlk_dec dec;
	int err = mlk_chunks_load(&copy->from);

	dec = (struct mlk_dec){.at = copy->from.raw, .end = copy->from.raw + h.raw_len};
	if (!err)
		err = mlk_decode_end(&dec, &end);
	if (!err)
		err = mlk_chunks_next(&copy->from);
	if (err)
		return err < 0 ? err : MLK_E_CORRUPT;
	return put_end(copy, h, &end);
}

int mlk_copy_finish(struct mlk_copy *copy)
{
	int err = mlk_copy_until(copy, UINT64_MAX);

	/* a trace that was cut has no END, and the copy says so, too */
	if (!err && copy->found)
		return copy_end(copy);
	return err ? err : mlk_chunk_out_error(copy->out, true);
}

int mlk_copy_so_far(struct mlk_copy *copy)
{
	int err = mlk_copy_until(copy, UINT64_MAX);
	struct mlk_ending end = {MLK_END_COPIED, copy->from.last_ns};
	struct mlk_chunk h = copy->from.header;

	if (!err && copy->from.condition.chunks_lost)
		err = MLK_E_CORRUPT;
	if (!err && copy->found)
		return copy_end(copy);
	h.type = MLK_CHUNK_END;
	h.first_ns = h.last_ns = end.time_ns;
	h.nr_records = 1;
	return err ? err : put_end(copy, h, &end);
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
