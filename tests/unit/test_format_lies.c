/* test_format_lies.c - payloads made to harm: right checksums, and contents that lie */
#include "tests/unit/format_outcome.h"

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
		cmocka_unit_test(the_truth_about_events_is_read),
		cmocka_unit_test(lies_about_events_are_refused),
		cmocka_unit_test(lies_about_columns_are_refused),
		cmocka_unit_test(lies_of_other_payloads_are_refused),
		cmocka_unit_test(images_beyond_the_limit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
