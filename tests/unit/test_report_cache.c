/* test_report_cache.c - caches of stacks that are cut, changed or made to harm: the replay is as
 * without */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/chunk/chunks.h"
#include "format/chunk/codec.h"
#include "format/writer.h"
#include "report/cache/stack_cache.h"
#include "report/replay/replay.h"

static char scratch[] = "/tmp/test_report_cache.XXXXXX";
#include "tests/unit/scratch.h"

#define NR_EVENTS 30
#define NR_CHUNKS 2 /* with ALLOCs; one more has a FREE alone */

static char trace_path[sizeof(scratch) + 8], cache_path[sizeof(trace_path) + 8];

/* Bytes of a file. */
struct bytes {
	uint8_t *at;
	size_t len;
};

static void write_event(struct mlk_writer *w, uint32_t nr)
{
	static const uint8_t stack[64];
	struct mlk_event e = {.kind = nr % 3 == 2 ? MLK_FREE : MLK_ALLOC,
			      .tgid = 42,
			      .tid = 42 + nr % 2,
			      .time_ns = 100 + 10 * nr,
			      .addr = 0x1000 + 64 * (nr % 3 == 2 ? nr - 1 : nr)};

	if (e.kind == MLK_ALLOC) {
		e.func = MLK_FUNC_MALLOC;
		e.size = 47 + nr;
		e.alloc_id = nr;
		e.nr_regs = 17;
		e.regs[MLK_SP_REG] = 0x7fff0000;
		e.regs[16] = 0x400000 + nr % 7;
		e.stack = stack;
		e.stack_len = sizeof(stack);
	}
	assert_int_equal(mlk_writer_event(w, &e), 0);
}

/* A module that is nowhere is mapped where the pcs are. */
static void write_layout(struct mlk_writer *w)
{
	struct mlk_mapping mapping = {
		.start = 0x400000,
		.end = 0x400004,
		.perms = MLK_PERM_R | MLK_PERM_X,
		.id = {.len = 2, .bytes = {MLK_ID_BUILD_ID, 1}},
		.path = "/bin/leaky",
	};
	struct mlk_maps maps = {.tgid = 42, .time_ns = 1, .nr = 1, .mappings = &mapping};

	assert_int_equal(mlk_writer_maps(w, &maps), 0);
	assert_int_equal(mlk_writer_module(w, &mapping.id, mapping.path, NULL, 0), 0);
}

static void write_trace(const char *path)
{
	const struct mlk_meta meta = {.tgid = 42, .start_ns = 1};
	FILE *file = fopen(path, "wb");
	struct mlk_writer *w;

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	write_layout(w);
	for (uint32_t nr = 0; nr < NR_EVENTS; nr++) {
		write_event(w, nr);
		if (nr == NR_EVENTS / NR_CHUNKS)
			assert_int_equal(mlk_writer_flush(w), 0);
	}
	/* a chunk without an ALLOC */
	assert_int_equal(mlk_writer_flush(w), 0);
	write_event(w, NR_EVENTS + 2);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1000), 0);
	mlk_writer_free(w);
	fclose(file);
}

static int make_trace(void **state)
{
	int err = setup(state);

	snprintf(trace_path, sizeof(trace_path), "%s/x.mlk", scratch);
	snprintf(cache_path, sizeof(cache_path), "%s" MLK_CACHE_SUFFIX, trace_path);
	if (!err)
		write_trace(trace_path);
	return err;
}

static struct bytes read_file(const char *path)
{
	struct bytes bytes = {0};
	FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file)
		return bytes;
	assert_int_equal(fstat(fileno(file), &st), 0);
	bytes.at = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(bytes.at);
	bytes.len = fread(bytes.at, 1, (size_t)st.st_size, file);
	fclose(file);
	return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
	chmod(path, 0600);
}

static bool is_equal(struct bytes a, struct bytes b)
{
	return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

/* All that a report shows of stacks, as text. */
static char *text_of(const struct replay *leaks)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	for (uint32_t i = 0; i < leaks->stacks->nr; i++) {
		const struct stack *stack = &leaks->stacks->all[i];
		struct dwunw_frame frames[STACK_MAX_FRAMES];
		size_t nr = stacks_frames(leaks->stacks, i, frames);

		fprintf(out, "%d %lu %lu %lu:", (int)stack->status, stack->allocs, stack->blocks,
			stack->bytes);
		for (size_t at = 0; at < nr; at++)
			fprintf(out, " %lx+%lx/%x/%x", frames[at].pc, frames[at].addr,
				frames[at].module, frames[at].flags);
		fputc('\n', out);
	}
	fprintf(out, "%lu %lu\n", leaks->totals.outstanding.bytes, leaks->condition.chunks_lost);
	fclose(out);
	return text;
}

/* Replay as a report does.  *@refused: the cache that was read was not of the trace. */
static char *replay_with(bool cached, unsigned int nr_threads, bool *refused)
{
	struct replay_opts opts = {.nr_threads = nr_threads};
	struct mlk_reader *trace;
	struct replay *leaks;
	char *text;
	int err;

	assert_int_equal(mlk_reader_open_file(&trace, trace_path), 0);
	if (cached)
		assert_int_equal(stack_cache_new(&opts.cache, trace_path, true), 0);
	err = replay_collect(&leaks, trace, &opts);
	*refused = err == MLK_E_CACHE;
	if (*refused) {
		stack_cache_refuse(opts.cache);
		err = replay_collect(&leaks, trace, &opts);
	}
	assert_int_equal(err, 0);
	text = text_of(leaks);
	replay_free(leaks);
	stack_cache_free(opts.cache);
	mlk_reader_free(trace);
	return text;
}

/* The cache as it should be, and what a replay without it tells. */
static char *make_cache(struct bytes *cache)
{
	bool refused;
	char *plain = replay_with(false, 1, &refused), *text;

	unlink(cache_path);
	text = replay_with(true, 2, &refused);
	assert_string_equal(text, plain);
	free(text);
	*cache = read_file(cache_path);
	assert_true(cache->len > MLK_FILE_HEADER + (NR_CHUNKS + 1) * MLK_CHUNK_HEADER);
	return plain;
}

/* Replay with the cache @bytes; the result is @plain, and then there is @whole again, or @bytes
 * still if they do not begin as a cache does. */
static void check_changed(const struct bytes *whole, const uint8_t *bytes, size_t len,
			  const char *plain)
{
	bool refused, is_cache = len < MLK_MAGIC_LEN ? !memcmp(bytes, whole->at, len)
						     : !memcmp(bytes, whole->at, MLK_MAGIC_LEN);
	struct bytes now;
	char *text;

	write_file(cache_path, bytes, len);
	text = replay_with(true, 1, &refused);
	assert_string_equal(text, plain);
	now = read_file(cache_path);
	assert_true(is_equal(now, is_cache ? *whole : (struct bytes){(uint8_t *)bytes, len}));
	free(now.at);
	free(text);
}

static void it_is_the_same_with_any_number_of_threads(void **state)
{
	struct bytes cache, again;
	char *plain = make_cache(&cache), *text;
	bool refused;

	(void)state;
	for (unsigned int nr = 1; nr < 4; nr++) {
		text = replay_with(true, nr, &refused);
		assert_string_equal(text, plain);
		assert_false(refused);
		unlink(cache_path);
		free(replay_with(true, nr, &refused));
		again = read_file(cache_path);
		assert_true(is_equal(again, cache));
		free(again.at);
		free(text);
	}
	free(cache.at);
	free(plain);
}

static void each_byte_is_flipped(void **state)
{
	struct bytes cache;
	char *plain = make_cache(&cache);
	uint8_t *bytes = malloc(cache.len);

	(void)state;
	assert_non_null(bytes);
	for (size_t at = 0; at < cache.len; at++)
		for (unsigned int bit = 1; bit < 256; bit *= 16) {
			memcpy(bytes, cache.at, cache.len);
			bytes[at] ^= bit;
			check_changed(&cache, bytes, cache.len, plain);
		}
	free(bytes);
	free(cache.at);
	free(plain);
}

static void it_is_cut_at_each_length_or_longer(void **state)
{
	struct bytes cache;
	char *plain = make_cache(&cache);
	uint8_t *longer;

	(void)state;
	for (size_t len = 0; len < cache.len; len++)
		check_changed(&cache, cache.at, len, plain);
	/* what follows its chunks is not looked at, unless it is one more chunk */
	longer = calloc(2, cache.len);
	assert_non_null(longer);
	memcpy(longer, cache.at, cache.len);
	memcpy(longer + cache.len, cache.at + MLK_FILE_HEADER, cache.len - MLK_FILE_HEADER);
	check_changed(&cache, longer, 2 * cache.len - MLK_FILE_HEADER, plain);
	free(longer);
	free(cache.at);
	free(plain);
}

/* Give the chunk at @bytes + @at, which has @left bytes behind its header, right sums. */
static size_t sum_chunk(uint8_t *bytes, size_t at, uint32_t salt)
{
	struct mlk_chunk h;

	assert_true(mlk_chunk_header_unpack(&h, bytes + at, salt));
	h.payload_crc = mlk_crc32(bytes + at + MLK_CHUNK_HEADER, h.stored_len);
	mlk_chunk_header_pack(bytes + at, &h);
	return at + MLK_CHUNK_HEADER + h.stored_len;
}

/* The chunks of @cache as they are without compression. */
static struct bytes expand(const struct bytes *cache, uint32_t salt)
{
	struct mlk_chunks c = {.source = {.fd = -1, .mem = cache->at, .size = cache->len},
			       .file = {.len = MLK_FILE_HEADER, .salt = salt}};
	struct mlk_enc out = {0};

	mlk_enc_bytes(&out, cache->at, MLK_FILE_HEADER);
	mlk_chunks_rewind(&c);
	while (mlk_chunks_next(&c) > 0) {
		uint8_t head[MLK_CHUNK_HEADER];

		assert_int_equal(mlk_chunks_load(&c), 0);
		c.header.flags = 0;
		c.header.stored_len = c.header.raw_len;
		c.header.payload_crc = mlk_crc32(c.raw, c.header.raw_len);
		mlk_chunk_header_pack(head, &c.header);
		mlk_enc_bytes(&out, head, sizeof(head));
		mlk_enc_bytes(&out, c.raw, c.header.raw_len);
	}
	mlk_chunks_release(&c);
	assert_false(out.failed);
	return (struct bytes){out.buf, out.len};
}

/* Content that was changed under right sums is the work of a user whose files are believed.  It may
 * say other stacks, but it harms nothing; and what does not fit the trace is refused. */
static void content_with_right_sums_does_no_harm(void **state)
{
	struct bytes cache, plain_chunks;
	char *plain = make_cache(&cache), *text;
	uint32_t salt = mlk_get_u32(cache.at + 32);
	unsigned int nr_refused = 0, nr_used = 0;
	uint8_t *bytes;
	bool refused;

	(void)state;
	plain_chunks = expand(&cache, salt);
	bytes = malloc(plain_chunks.len);
	assert_non_null(bytes);
	for (size_t at = MLK_FILE_HEADER + MLK_CHUNK_HEADER; at < plain_chunks.len; at++)
		for (unsigned int bit = 1; bit < 256; bit *= 4) {
			memcpy(bytes, plain_chunks.at, plain_chunks.len);
			bytes[at] ^= bit;
			for (size_t chunk = MLK_FILE_HEADER; chunk < plain_chunks.len;) {
				struct mlk_chunk h;

				if (!mlk_chunk_header_unpack(&h, bytes + chunk, salt))
					break;
				chunk = sum_chunk(bytes, chunk, salt);
			}
			write_file(cache_path, bytes, plain_chunks.len);
			text = replay_with(true, 2, &refused);
			nr_refused += refused;
			nr_used += !refused;
			if (refused)
				assert_string_equal(text, plain);
			free(text);
		}
	assert_true(nr_refused > 0 && nr_used > 0);
	free(bytes);
	free(plain_chunks.at);
	free(cache.at);
	free(plain);
}

/* The trace's own damage is told as without a cache. */
static void damage_of_the_trace_is_not_hidden(void **state)
{
	struct bytes cache, trace = read_file(trace_path), now;
	char *plain = make_cache(&cache), *without, *with;
	size_t at = trace.len - MLK_CHUNK_HEADER;
	bool refused;

	(void)state;
	/* a byte of the last chunk of events */
	while (at-- > MLK_FILE_HEADER) {
		struct mlk_chunk h;

		if (mlk_chunk_header_unpack(&h, trace.at + at, mlk_get_u32(trace.at + 32)) &&
		    h.type == MLK_CHUNK_EVENTS)
			break;
	}
	trace.at[at + MLK_CHUNK_HEADER + 1] ^= 1;
	write_file(trace_path, trace.at, trace.len);
	without = replay_with(false, 1, &refused);
	assert_string_not_equal(without, plain);
	with = replay_with(true, 2, &refused);
	assert_true(refused);
	assert_string_equal(with, without);
	now = read_file(cache_path);
	assert_true(is_equal(now, cache)); /* that of the damaged trace is not kept */
	trace.at[at + MLK_CHUNK_HEADER + 1] ^= 1;
	write_file(trace_path, trace.at, trace.len);
	free(now.at);
	free(with);
	free(without);
	free(plain);
	free(cache.at);
	free(trace.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_same_with_any_number_of_threads),
		cmocka_unit_test(each_byte_is_flipped),
		cmocka_unit_test(it_is_cut_at_each_length_or_longer),
		cmocka_unit_test(content_with_right_sums_does_no_harm),
		cmocka_unit_test(damage_of_the_trace_is_not_hidden),
	};

	return cmocka_run_group_tests(tests, make_trace, teardown);
}
