/* test_format_hostile.c - chunks made to harm: right checksums, headers and frames that lie */
#include <zstd.h>

#include "tests/unit/format_outcome.h"

/* Bombs */

struct frame {
	uint8_t *bytes;
	size_t len;
};

/* @mib MiB of zeros as a frame that states its size, or does not. */
static struct frame make_bomb(size_t mib, int says_size)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint8_t *zeros = calloc(mib, MIB);
	struct frame f = {.bytes = malloc(MIB)};

	assert_true(zeros && f.bytes && zstd);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, says_size);
	f.len = ZSTD_compress2(zstd, f.bytes, MIB, zeros, mib * MIB);
	assert_false(ZSTD_isError(f.len));
	ZSTD_freeCCtx(zstd);
	free(zeros);
	return f;
}

/* Make @f state @size, in the four bytes where it states it now. */
static void lie_about_size(struct frame *f, uint32_t size)
{
	int single = f->bytes[4] >> 5 & 1;

	assert_int_equal(f->bytes[4] >> 6, 2);
	mlk_put_u32(f->bytes + (single ? 5 : 6), size);
	assert_int_equal(ZSTD_getFrameContentSize(f->bytes, f->len), size);
}

static void assert_refused(const struct frame *f, uint32_t raw_len)
{
	const struct mlk_chunk h = {
		.type = MLK_CHUNK_EVENTS, .flags = MLK_CHUNK_ZSTD, .raw_len = raw_len};
	struct outcome o;

	/* Payload as stored, as it should be, and what zstd needs. */
	fuzz_memory_limit(12 * MIB);
	o = read_chunk(h, f->bytes, f->len);
	fuzz_memory_limit(SIZE_MAX / 2);
	assert_int_equal(o.lost, 1);
	assert_int_equal(o.records, 0);
}

static void a_bomb_is_refused(void **state)
{
	static const uint32_t said[] = {0, 1, 1000, MIB, MLK_RAW_MAX};
	struct frame honest = make_bomb(256, 1), silent = make_bomb(256, 0);
	struct frame liar = make_bomb(256, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		assert_refused(&honest, said[i]);
		assert_refused(&silent, said[i]);
		lie_about_size(&liar, said[i]);
		assert_refused(&liar, said[i]);
	}
	free(honest.bytes);
	free(silent.bytes);
	free(liar.bytes);
}

static void two_frames_are_refused(void **state)
{
	struct frame one = make_bomb(1, 1),
		     two = {.bytes = malloc(2 * one.len), .len = 2 * one.len};

	(void)state;
	memcpy(two.bytes, one.bytes, one.len);
	memcpy(two.bytes + one.len, one.bytes, one.len);
	assert_refused(&two, MIB);
	assert_refused(&two, 2 * MIB);
	/* A frame that is to be skipped, before the right one. */
	memcpy(two.bytes, "\x50\x2a\x4d\x18\0\0\0\0", 8);
	memcpy(two.bytes + 8, one.bytes, one.len);
	two.len = one.len + 8;
	assert_refused(&two, MIB);
	free(one.bytes);
	free(two.bytes);
}

static void what_one_chunk_said_is_not_kept(void **state)
{
	/* As many META chunks as one likes must not fill the memory with strings. */
	static uint8_t payload[MLK_RAW_MAX];
	struct mlk_chunk h = {.type = MLK_CHUNK_META, .flags = MLK_CHUNK_ZSTD};
	struct mlk_enc trace = {0};
	uint8_t *frame = malloc(ZSTD_compressBound(sizeof(payload)));
	struct mlk_reader *r;
	struct mlk_record rec;
	size_t len;

	(void)state;
	for (size_t at = 0; at < sizeof(payload); at += 128)
		memset(memcpy(payload + at, "\1\x7e", 2) + 2, 'a', 126);
	len = ZSTD_compress(frame, ZSTD_compressBound(sizeof(payload)), payload, sizeof(payload),
			    1);
	h.raw_len = sizeof(payload);
	fuzz_file_header(&trace, 0);
	for (; h.seq < 20; h.seq++)
		fuzz_chunk(&trace, h, frame, len);
	fuzz_memory_limit(24 * MIB);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	assert_int_equal(strlen(mlk_reader_meta(r)->command), 126);
	for (int i = 0; i < 3; i++) {
		mlk_reader_rewind(r, MLK_RECORD_ALL);
		assert_int_equal(mlk_reader_next(r, &rec), 0);
	}
	fuzz_memory_limit(SIZE_MAX / 2);
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	free(frame);
}

/* Lies in the header */

static void lies_of_a_header_cost_that_chunk(void **state)
{
	static const size_t fields[] = {8, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64, 72, 80, 88};
	static const uint32_t values[] = {
		0,	   1, 8, 0x7f, 0xffff, MLK_RAW_MAX, MLK_RAW_MAX + 1, MLK_STORED_MAX + 1,
		UINT32_MAX};

	(void)state;
	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			const struct mlk_chunk h = {.type = MLK_CHUNK_THREADS,
						    .raw_len = sizeof(last_thread)};
			struct mlk_enc trace = {0};
			uint8_t *header;

			fuzz_file_header(&trace, 0);
			for (int i = 0; i < 3; i++)
				fuzz_chunk(&trace, h, last_thread, sizeof(last_thread));
			header = trace.buf + MLK_FILE_HEADER + MLK_CHUNK_HEADER +
				 sizeof(last_thread);
			mlk_put_u32(header + fields[f], values[v]);
			mlk_put_u32(header + 92, mlk_crc32(header, 92));
			fuzz_memory_limit(12 * MIB);
			assert_in_range(read_trace(&trace).chunks, 2, 3);
			fuzz_memory_limit(SIZE_MAX / 2);
			mlk_enc_release(&trace);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bomb_is_refused),
		cmocka_unit_test(two_frames_are_refused),
		cmocka_unit_test(what_one_chunk_said_is_not_kept),
		cmocka_unit_test(lies_of_a_header_cost_that_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
