/* fuzz_chunk.c - a whole trace through the reader
 *
 * An input that begins with the first byte of a trace is one.  Any other is a list of payloads,
 * which get headers with right checksums, so that the fuzzer need not guess those:
 *   u8 type, u8 how, u16 length, [u32 raw length, if how & RAW_LEN], so many bytes
 */
#include <zstd.h>

#include "tests/fuzz/records.h"

enum {
	COMPRESS = 1, /* the bytes become a frame */
	IS_FRAME = 2, /* the bytes are said to be one */
	RAW_LEN = 4,  /* the raw length is given, and perhaps a lie */
	GAP = 8,      /* a chunk is missing before this one */
	REPEAT = 16,  /* the bytes again and again, up to the raw length: a bomb */
};

/* Twice the longest payload, images as large as allowed with their reserves, and the rest. */
#define MEMORY_MAX (512u << 20)

static uint8_t repeated[MLK_RAW_MAX];

/* Compress @bytes into *frame, which is freed by the caller. */
static size_t compress(uint8_t **frame, const void *bytes, size_t len)
{
	size_t room = ZSTD_compressBound(len), n;

	*frame = malloc(room);
	FUZZ_CHECK(*frame);
	n = ZSTD_compress(*frame, room, bytes, len, 1);
	FUZZ_CHECK(!ZSTD_isError(n));
	return n;
}

static void wrap_one(struct mlk_enc *out, struct fuzz_in *in, uint64_t *seq)
{
	struct mlk_chunk h = {.type = (uint16_t)fuzz_take(in, 1)};
	unsigned int how = (unsigned int)fuzz_take(in, 1);
	size_t len = (size_t)fuzz_take(in, 2), said = len;
	const uint8_t *bytes;
	uint8_t *frame = NULL;

	if (how & RAW_LEN)
		said = (size_t)fuzz_take(in, 4) % (MLK_RAW_MAX + 2);
	if (len > fuzz_left(in))
		len = fuzz_left(in);
	bytes = in->at;
	in->at += len;
	if (!(how & RAW_LEN))
		said = len;
	if (how & REPEAT && len && said <= MLK_RAW_MAX) {
		for (size_t i = 0; i < said; i += len)
			memcpy(repeated + i, bytes, len < said - i ? len : said - i);
		bytes = repeated;
		len = said;
	}
	if (how & (COMPRESS | IS_FRAME))
		h.flags = MLK_CHUNK_ZSTD;
	if (how & COMPRESS) {
		len = compress(&frame, bytes, len);
		bytes = frame;
	}
	h.seq = *seq += 1 + !!(how & GAP);
	h.first_ns = h.last_ns = 1000 * h.seq;
	h.lost_allocs = how >> 5;
	h.raw_len = (uint32_t)said;
	h.nr_records = 1;
	fuzz_chunk(out, h, bytes, len);
	free(frame);
}

static void wrap(struct mlk_enc *out, struct fuzz_in in)
{
	uint64_t seq = UINT64_MAX;

	fuzz_file_header(out, (uint32_t)fuzz_take(&in, 1) % 3);
	/* Some bombs are enough: each costs time. */
	for (int i = 0; i < 32 && in.at < in.end; i++)
		wrap_one(out, &in, &seq);
}

/* Each chunk for itself, by a list that an index may have made. */
static void read_listed(struct mlk_reader *r, size_t len)
{
	const struct mlk_entry *entries;
	struct mlk_record rec;
	size_t nr;

	FUZZ_CHECK(!mlk_reader_list(r, &entries, &nr));
	FUZZ_CHECK(nr <= len / MLK_CHUNK_HEADER + 1);
	for (size_t i = 0; i < nr && i < 64; i++) {
		int err = mlk_reader_seek(r, &entries[i], MLK_RECORD_DUMP), got;

		FUZZ_CHECK(!err || err == MLK_E_CORRUPT);
		while ((got = mlk_reader_next(r, &rec)) == 1)
			FUZZ_CHECK(!err);
		FUZZ_CHECK(got == 0);
	}
	/* After a lie the list is what is there, and each chunk of it is found. */
	FUZZ_CHECK(!mlk_reader_list(r, &entries, &nr));
}

static void read_trace(const uint8_t *bytes, size_t len)
{
	struct fuzz_seen all, again;
	struct mlk_condition c;
	struct mlk_reader *r;
	int err = mlk_reader_open_mem(&r, bytes, len);

	if (err) {
		FUZZ_CHECK(!r && err <= MLK_E_MAGIC && err >= MLK_E_CORRUPT);
		return;
	}
	all = fuzz_read_all(r, MLK_RECORD_ALL);
	c = *mlk_reader_condition(r);
	FUZZ_CHECK(c.bytes_skipped <= len);
	FUZZ_CHECK(c.chunks <= len / MLK_CHUNK_HEADER && c.chunks_unknown <= c.chunks);
	/* Read again, and each type for itself: the same comes out. */
	again = fuzz_read_all(r, MLK_RECORD_ALL);
	FUZZ_CHECK(!memcmp(&all, &again, sizeof(all)));
	FUZZ_CHECK(!memcmp(&c, mlk_reader_condition(r), sizeof(c)));
	for (int i = 0; i < 4; i++) {
		again = fuzz_read_all(r, 1u << i);
		FUZZ_CHECK(again.records[i] == all.records[i]);
	}
	(void)fuzz_read_all(r, MLK_RECORD_HEAD);
	again = fuzz_read_all(r, MLK_RECORD_DUMP);
	FUZZ_CHECK(!memcmp(all.records, again.records, sizeof(all.records)));
	read_listed(r, len);
	mlk_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mlk_enc trace = {0};

	fuzz_memory_limit(MEMORY_MAX);
	if (size && data[0] == 0xf5) {
		read_trace(data, size);
		return 0;
	}
	wrap(&trace, (struct fuzz_in){data, data + size});
	FUZZ_CHECK(!trace.failed);
	read_trace(trace.buf, trace.len);
	mlk_enc_release(&trace);
	return 0;
}
