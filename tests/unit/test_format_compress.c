/* test_format_compress.c - blocks that end where columns end: what zstd itself makes of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/chunk/compress.h"

#define MOST (4u << 20)

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A byte in front, and @nr columns of @len bytes, each of 16 values of its own. */
static struct mlk_enc make_columns(size_t nr, size_t len)
{
	struct mlk_enc columns[MLK_MAX_COLUMNS] = {{0}}, payload = {0};
	uint64_t random = 1;

	for (size_t i = 0; i < nr; i++)
		for (size_t at = 0; at < len; at++)
			mlk_enc_u8(&columns[i], (uint8_t)(i * 16 + (rnd(&random) >> 33) % 16));
	mlk_enc_u8(&payload, 7);
	mlk_enc_columns(&payload, columns, nr);
	for (size_t i = 0; i < nr; i++)
		mlk_enc_release(&columns[i]);
	assert_false(payload.failed);
	return payload;
}

/* Compress @payload, find it again in the frame, and return the frame's bytes. */
static size_t compress(const struct mlk_enc *payload)
{
	const size_t room = ZSTD_compressBound(payload->len);
	ZSTD_CCtx *zstd = mlk_compressor_new(1);
	uint8_t *frame = malloc(room), *back = malloc(payload->len + 1);
	size_t len;

	assert_true(zstd && frame && back);
	for (int again = 0; again < 2; again++) {
		len = mlk_compress(zstd, frame, room, payload);
		assert_false(ZSTD_isError(len));
		assert_int_equal(ZSTD_getFrameContentSize(frame, len), payload->len);
		assert_int_equal(ZSTD_decompress(back, payload->len + 1, frame, len), payload->len);
		if (payload->len)
			assert_memory_equal(back, payload->buf, payload->len);
	}
	assert_true(ZSTD_isError(mlk_compress(zstd, frame, len - 1, payload)));
	ZSTD_freeCCtx(zstd);
	free(frame);
	free(back);
	return len;
}

/* The bytes that zstd makes of it as a whole. */
static size_t compress_whole(const struct mlk_enc *payload)
{
	const size_t room = ZSTD_compressBound(payload->len);
	uint8_t *frame = malloc(room);
	size_t len;

	assert_non_null(frame);
	len = ZSTD_compress(frame, room, payload->buf, payload->len, 1);
	free(frame);
	return len;
}

/* 16 values take half of a byte, those of two columns more: zstd's blocks are 128 KiB. */
static void columns_do_not_share_blocks(void **state)
{
	struct mlk_enc payload = make_columns(8, 40000);
	size_t parts = compress(&payload);

	(void)state;
	assert_true(parts < 8 * 40000 / 2 + 8 * 100);
	assert_true(compress_whole(&payload) > parts + parts / 4);
	mlk_enc_release(&payload);
}

/* Of any number and length, and where there are none. */
static void all_comes_back(void **state)
{
	static const size_t lens[] = {0, 1, 100, 2047, 2048, 131073};
	struct mlk_enc payload;

	(void)state;
	for (size_t nr = 0; nr <= 16; nr += 4) {
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			payload = make_columns(nr, lens[i]);
			assert_true(payload.len <= MOST);
			compress(&payload);
			mlk_enc_release(&payload);
		}
	}
	mlk_enc_bytes(&payload, "no columns", 10);
	assert_int_equal(compress(&payload), compress_whole(&payload));
	mlk_enc_release(&payload);
}

/* What cannot be compressed at all has room, too. */
static void noise_has_room(void **state)
{
	struct mlk_enc columns[19] = {{0}}, payload = {0};
	uint64_t random = 3;

	(void)state;
	for (int i = 0; i < 19; i++)
		for (int at = 0; at < 2048; at++)
			mlk_enc_u8(&columns[i], (uint8_t)(rnd(&random) >> 40));
	mlk_enc_u8(&payload, 7);
	mlk_enc_columns(&payload, columns, 19);
	assert_true(compress(&payload) > payload.len);
	for (int i = 0; i < 19; i++)
		mlk_enc_release(&columns[i]);
	mlk_enc_release(&payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_do_not_share_blocks),
		cmocka_unit_test(all_comes_back),
		cmocka_unit_test(noise_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
