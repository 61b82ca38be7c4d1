/* test_format_hostile.c - traces made with intent to harm: checksums are right, what they say is
 * not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "format/event/events.h"
#include "format/reader.h"
#include "tests/fuzz/fuzz.h"

#define MIB 1048576u

static const uint8_t last_thread[] = {1, 7, 7, 4, 'l', 'a', 's', 't'};

/* What a reader makes of a trace. */
struct outcome {
	int records; /* but for the last thread */
	bool last_read;
	uint64_t lost, chunks;
};

static struct outcome read_trace(const struct mlk_enc *trace)
{
	struct outcome o = {0};
	struct mlk_reader *r;
	struct mlk_record rec;
	int got;

	assert_false(trace->failed);
	assert_int_equal(mlk_reader_open_mem(&r, trace->buf, trace->len), 0);
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		if (rec.type == MLK_RECORD_THREAD && !strcmp(rec.thread.name, "last"))
			o.last_read = true;
		else
			o.records++;
	}
	assert_int_equal(got, 0);
	o.lost = mlk_reader_condition(r)->chunks_lost;
	o.chunks = mlk_reader_condition(r)->chunks;
	mlk_reader_free(r);
	return o;
}

/* A trace of one chunk, @h with @stored, and then one of the thread "last". */
static struct outcome read_chunk(struct mlk_chunk h, const void *stored, size_t stored_len)
{
	struct mlk_chunk last = {
		.type = MLK_CHUNK_THREADS, .seq = h.seq + 1, .raw_len = sizeof(last_thread)};
	struct mlk_enc trace = {0};
	struct outcome o;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, stored, stored_len);
	fuzz_chunk(&trace, last, last_thread, sizeof(last_thread));
	o = read_trace(&trace);
	mlk_enc_release(&trace);
	assert_true(o.last_read);
	return o;
}

static struct outcome read_payload(enum mlk_chunk_type type, const void *payload, size_t len)
{
	const struct mlk_chunk h = {
		.type = (uint16_t)type, .raw_len = (uint32_t)len, .nr_records = 1};

	return read_chunk(h, payload, len);
}

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

/* Lies in a payload */

#define SEVEN_BITS_63 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" /* uvar of 2^63 */
#define MILLION	      "\x80\x80\x40"				 /* uvar of 2^20 */
#define MORE	      "\x81\x80\x40"				 /* and 1 more */
#define EIGHT	      "\0\0\0\0\0\0\0\0"

struct lie {
	const char *name;
	int where; /* a column of EVENTS, or a type of chunk */
	const char *bytes;
	size_t len;
};

#define LIE(name, where, bytes)                       \
	{                                             \
		name, where, bytes, sizeof(bytes) - 1 \
	}

/* An ALLOC: registers, a stack of 64 bytes with one word in it, and then a FREE of it. */
static const struct lie truth[MLK_COL_NR_0] = {
	LIE("kind", MLK_COL_KIND, "\1\2"),
	LIE("thread", MLK_COL_THREAD, "\0\7\7\1"),
	LIE("time", MLK_COL_TIME, "\2\2"),
	LIE("address", MLK_COL_ADDR, "\x20\1"),
	LIE("size", MLK_COL_SIZE, "\7"),
	LIE("function", MLK_COL_FUNC, "\1"),
	LIE("id", MLK_COL_ID, "\0"),
	LIE("flags", MLK_COL_FLAGS, "\0"),
	LIE("registers", MLK_COL_REGS, "\x11\x80\x40\0"),
	LIE("stack", MLK_COL_STACK, "\x80\x41\1\0"),
	LIE("masks", MLK_COL_MASKS, "\1\0"),
	LIE("words", MLK_COL_WORDS, "\0"),
	LIE("new words", MLK_COL_NEW, "\x54"),
	LIE("top", MLK_COL_TOP, ""),
};

static const struct lie event_lies[] = {
	LIE("kind 0", MLK_COL_KIND, "\0\2"),
	LIE("kind 6", MLK_COL_KIND, "\6\2"),
	LIE("unknown bit", MLK_COL_KIND, "\x41\2"),
	LIE("nested ALLOC", MLK_COL_KIND, "\x21\2"),
	LIE("more records than there are", MLK_COL_KIND, "\1\2\2"),
	LIE("thread 1 of 0", MLK_COL_THREAD, "\1\1"),
	LIE("thread 2^63", MLK_COL_THREAD, "\0\7\7" SEVEN_BITS_63),
	LIE("tgid of 33 bits", MLK_COL_THREAD, "\0\x80\x80\x80\x80\x10\7\1"),
	LIE("tid of 33 bits", MLK_COL_THREAD, "\0\7\x80\x80\x80\x80\x10\1"),
	LIE("varint of 11 bytes", MLK_COL_TIME, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2"),
	LIE("varint of 65 bits", MLK_COL_TIME, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\2"),
	LIE("varint without end", MLK_COL_TIME, "\xff"),
	LIE("address of the 2nd last of 1", MLK_COL_ADDR, "\x20\2"),
	LIE("address of the 2^63rd last", MLK_COL_ADDR, "\x20" SEVEN_BITS_63),
	LIE("no address", MLK_COL_ADDR, ""),
	LIE("no size", MLK_COL_SIZE, ""),
	LIE("no function", MLK_COL_FUNC, ""),
	LIE("no id", MLK_COL_ID, ""),
	LIE("flags of 33 bits", MLK_COL_FLAGS, "\x80\x80\x80\x80\x10"),
	LIE("0 registers", MLK_COL_REGS, "\0\x80\x40\0"),
	LIE("7 registers", MLK_COL_REGS, "\7\x80\x40\0"),
	LIE("35 registers", MLK_COL_REGS, "\x23\x80\x40\0"),
	LIE("255 registers", MLK_COL_REGS, "\xff\x80\x40\0"),
	LIE("mask with the stack pointer", MLK_COL_REGS, "\x11\x80\x40\x80\1"),
	LIE("mask beyond the registers", MLK_COL_REGS, "\x11\x80\x40\x80\x80\x08"),
	LIE("mask of more words than there are", MLK_COL_REGS, "\x11\x80\x40\7"),
	LIE("end below sp", MLK_COL_STACK, "\xf0\x3f"),
	LIE("end not aligned", MLK_COL_STACK, "\x82\x41\1\0"),
	LIE("stack of 64 KiB and 8", MLK_COL_STACK, "\x90\xc0\x08\1\0"),
	LIE("stack of 2^62", MLK_COL_STACK, SEVEN_BITS_63 "\1\0"),
	LIE("2 slices of 1", MLK_COL_STACK, "\x80\x41\2\0\0"),
	LIE("515 slices", MLK_COL_STACK, "\x80\x41\x83\4\0"),
	LIE("2^63 slices", MLK_COL_STACK, "\x80\x41" SEVEN_BITS_63 "\0"),
	LIE("slice 1 of 1", MLK_COL_STACK, "\x80\x41\1\1"),
	LIE("slice 2^63", MLK_COL_STACK, "\x80\x41\1" SEVEN_BITS_63),
	LIE("half a mask", MLK_COL_MASKS, "\1"),
	LIE("mask outside of the stack", MLK_COL_MASKS, "\0\1"),
	LIE("word 2 of 1", MLK_COL_WORDS, "\2"),
	LIE("word 2^63", MLK_COL_WORDS, SEVEN_BITS_63),
	LIE("no word", MLK_COL_WORDS, ""),
	LIE("no new word", MLK_COL_NEW, ""),
};

/* A payload of the @nr columns @column, where column @liar has the length @len instead. */
static void put_columns(struct mlk_enc *out, const struct lie *column, int liar, uint64_t len)
{
	mlk_enc_u8(out, MLK_STACK_RAW);
	mlk_enc_u8(out, MLK_COL_NR_0);
	for (int i = 0; i < MLK_COL_NR_0; i++)
		mlk_enc_uvar(out, i == liar ? len : column[i].len);
	for (int i = 0; i < MLK_COL_NR_0; i++)
		mlk_enc_bytes(out, column[i].bytes, column[i].len);
}

static void the_truth_about_events_is_read(void **state)
{
	struct mlk_enc payload = {0};
	struct outcome o;

	(void)state;
	put_columns(&payload, truth, -1, 0);
	o = read_payload(MLK_CHUNK_EVENTS, payload.buf, payload.len);
	assert_int_equal(o.lost, 0);
	assert_int_equal(o.records, 2);
	mlk_enc_release(&payload);
}

static void lies_about_events_are_refused(void **state)
{
	int believed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(event_lies) / sizeof(event_lies[0]); i++) {
		struct lie columns[MLK_COL_NR_0];
		struct mlk_enc payload = {0};
		struct outcome o;

		memcpy(columns, truth, sizeof(columns));
		columns[event_lies[i].where] = event_lies[i];
		put_columns(&payload, columns, -1, 0);
		fuzz_memory_limit(12 * MIB);
		o = read_payload(MLK_CHUNK_EVENTS, payload.buf, payload.len);
		fuzz_memory_limit(SIZE_MAX / 2);
		believed += o.lost != 1;
		if (o.lost != 1)
			print_error("not refused: %s\n", event_lies[i].name);
		mlk_enc_release(&payload);
	}
	assert_int_equal(believed, 0);
}

static void lies_about_columns_are_refused(void **state)
{
	static const uint64_t more[] = {100, 1 << 20, UINT32_MAX, 1ull << 63, UINT64_MAX};

	(void)state;
	for (int nr = 0; nr < 256; nr++) {
		struct mlk_enc payload = {0};
		struct outcome o;

		if (nr == MLK_COL_NR_0)
			continue;
		put_columns(&payload, truth, -1, 0);
		payload.buf[1] = (uint8_t)nr;
		o = read_payload(MLK_CHUNK_EVENTS, payload.buf, payload.len);
		assert_int_equal(o.lost, 1);
		mlk_enc_release(&payload);
	}
	for (int liar = 0; liar < MLK_COL_NR_0; liar++)
		for (size_t m = 0; m < sizeof(more) / sizeof(more[0]); m++) {
			struct mlk_enc payload = {0};

			put_columns(&payload, truth, liar, more[m]);
			assert_int_equal(
				read_payload(MLK_CHUNK_EVENTS, payload.buf, payload.len).lost, 1);
			mlk_enc_release(&payload);
		}
}

/* An entry of MAPS, from its start on; its path follows. */
#define MAPPING "\1\1\0\5\0\0\0\0"

static const struct lie other_lies[] = {
	LIE("no field's length", MLK_CHUNK_META, "\1"),
	LIE("field beyond the end", MLK_CHUNK_META, "\1\5abcd"),
	LIE("field of 2^63", MLK_CHUNK_META, "\1" SEVEN_BITS_63 "abcd"),
	LIE("2 mappings of 1", MLK_CHUNK_MAPS, "\7" EIGHT "\2" MAPPING "\0"),
	LIE("a million mappings of 1", MLK_CHUNK_MAPS, "\7" EIGHT MILLION MAPPING "\0"),
	LIE("a million and 1 mappings", MLK_CHUNK_MAPS, "\7" EIGHT MORE MAPPING "\0"),
	LIE("2^63 mappings", MLK_CHUNK_MAPS, "\7" EIGHT SEVEN_BITS_63 MAPPING "\0"),
	LIE("mapping that wraps", MLK_CHUNK_MAPS,
	    "\7" EIGHT "\2" SEVEN_BITS_63 SEVEN_BITS_63 "\0\5\0\0\0\0\0" MAPPING "\0"),
	LIE("path beyond the end", MLK_CHUNK_MAPS, "\7" EIGHT "\1" MAPPING "\x05/x"),
	LIE("path of 2^63", MLK_CHUNK_MAPS, "\7" EIGHT "\1" MAPPING SEVEN_BITS_63),
	LIE("id of 33 bytes", MLK_CHUNK_MAPS,
	    "\7" EIGHT "\1\1\1\0\5\0\0\0\x21" EIGHT EIGHT EIGHT EIGHT "\1\0"),
	LIE("id of no bytes", MLK_CHUNK_MODULE, "\0\2/x\3\0\3abc"),
	LIE("piece beyond the end", MLK_CHUNK_MODULE, "\2\1\xab\2/x\x09\0\5abc"),
	LIE("piece of 2^63", MLK_CHUNK_MODULE, "\2\1\xab\2/x\x09\0" SEVEN_BITS_63 "abc"),
	LIE("piece beyond the image", MLK_CHUNK_MODULE, "\2\1\xab\2/x\2\0\3abc"),
	LIE("piece behind the image", MLK_CHUNK_MODULE, "\2\1\xab\2/x\3\1\3abc"),
	LIE("piece that wraps", MLK_CHUNK_MODULE,
	    "\2\1\xab\2/x\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\3abc"),
	LIE("image of 2^63", MLK_CHUNK_MODULE, "\2\1\xab\2/x" SEVEN_BITS_63 "\0\3abc"),
	LIE("image of 1 GiB and 1", MLK_CHUNK_MODULE, "\2\1\xab\2/x\x81\x80\x80\x80\x04\0\3abc"),
	LIE("2 threads of 1", MLK_CHUNK_THREADS, "\2\7\7\1x"),
	LIE("a million threads of 1", MLK_CHUNK_THREADS, MILLION "\7\7\1x"),
	LIE("a million and 1 threads", MLK_CHUNK_THREADS, MORE "\7\7\1x"),
	LIE("2^63 threads", MLK_CHUNK_THREADS, SEVEN_BITS_63 "\7\7\1x"),
	LIE("name beyond the end", MLK_CHUNK_THREADS, "\1\7\7\2x"),
	LIE("name of 4097 bytes", MLK_CHUNK_THREADS, "\1\7\7\x81\x20x"),
	LIE("2 losses of 1", MLK_CHUNK_LOSSES, "\2\1"),
	LIE("2^63 losses", MLK_CHUNK_LOSSES, SEVEN_BITS_63 "\1"),
	LIE("half an end", MLK_CHUNK_END, "\1\0\0\0\0"),
};

static void lies_of_other_payloads_are_refused(void **state)
{
	int believed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(other_lies) / sizeof(other_lies[0]); i++) {
		const struct lie *lie = &other_lies[i];
		struct outcome o;

		fuzz_memory_limit(12 * MIB);
		o = read_payload((enum mlk_chunk_type)lie->where, lie->bytes, lie->len);
		fuzz_memory_limit(SIZE_MAX / 2);
		believed += o.lost != 1;
		if (o.lost != 1)
			print_error("not refused: %s\n", lie->name);
	}
	assert_int_equal(believed, 0);
}

/* Images larger than any writer's: refused before the memory is taken. */
static void images_beyond_the_limit_are_refused(void **state)
{
	const uint32_t nr_threads = MLK_MAX_HELD / MLK_MAX_STACK + 100;
	struct mlk_enc columns[MLK_COL_NR_0] = {0}, payload = {0};
	struct lie all[MLK_COL_NR_0];
	struct outcome o;

	(void)state;
	for (uint32_t i = 0; i < nr_threads; i++) {
		for (int c = 0; c < MLK_COL_NR_0; c++)
			if (c != MLK_COL_THREAD && c != MLK_COL_STACK && c < MLK_COL_MASKS)
				mlk_enc_bytes(&columns[c], truth[c].bytes,
					      c == MLK_COL_REGS ? truth[c].len : 1);
		mlk_enc_bytes(&columns[MLK_COL_THREAD], "\0\7", 2);
		mlk_enc_uvar(&columns[MLK_COL_THREAD], i);
		mlk_enc_delta(&columns[MLK_COL_STACK], 0x1000 + MLK_MAX_STACK, 0);
		mlk_enc_u8(&columns[MLK_COL_STACK], 0);
	}
	for (int c = 0; c < MLK_COL_NR_0; c++)
		all[c] = (struct lie){"", c, (const char *)columns[c].buf, columns[c].len};
	put_columns(&payload, all, -1, 0);
	/* Images have up to 2.5 times the room that they need. */
	fuzz_memory_limit(MLK_MAX_HELD / 2 * 5 + 12 * MIB);
	o = read_payload(MLK_CHUNK_EVENTS, payload.buf, payload.len);
	fuzz_memory_limit(SIZE_MAX / 2);
	assert_int_equal(o.lost, 1);
	assert_int_equal(o.records, MLK_MAX_HELD / MLK_MAX_STACK);
	for (int c = 0; c < MLK_COL_NR_0; c++)
		mlk_enc_release(&columns[c]);
	mlk_enc_release(&payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bomb_is_refused),
		cmocka_unit_test(two_frames_are_refused),
		cmocka_unit_test(what_one_chunk_said_is_not_kept),
		cmocka_unit_test(lies_of_a_header_cost_that_chunk),
		cmocka_unit_test(the_truth_about_events_is_read),
		cmocka_unit_test(lies_about_events_are_refused),
		cmocka_unit_test(lies_about_columns_are_refused),
		cmocka_unit_test(lies_of_other_payloads_are_refused),
		cmocka_unit_test(images_beyond_the_limit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
