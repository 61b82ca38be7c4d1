/* fuzz_cache.c - a cache of stacks, from the file to the unwinder that has all stacks
 *
 * The input is the payload of its only chunk.  Headers and checksums are right, and the module of
 * the seeds is one of the trace's, as a report demands before it believes a cache.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "format/cache.h"
#include "report/decode/unwound_chunk.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_MAX (512u << 20)
#define FRAMES	   64

/* A file with the cache of a trace that has the same chunk.  Returns a file descriptor. */
static int write_cache(const uint8_t *payload, size_t len)
{
	struct mlk_chunk header = {
		.type = MLK_CHUNK_UNWOUND, .raw_len = (uint32_t)len, .nr_records = 1};
	const struct mlk_cache_key key = {23, 47};
	struct mlk_enc trace = {0}, chunk = {0};
	int fd = memfd_create("cache", MFD_CLOEXEC);
	struct mlk_reader *r;

	FUZZ_CHECK(fd >= 0);
	fuzz_file_header(&trace, MLK_STACK_FILTERED);
	fuzz_chunk(&chunk, header, payload, len);
	mlk_enc_bytes(&trace, chunk.buf, chunk.len);
	FUZZ_CHECK(!trace.failed && !chunk.failed);
	FUZZ_CHECK(!mlk_reader_open_mem(&r, trace.buf, trace.len));
	FUZZ_CHECK(!mlk_cache_begin(fd, r, &key));
	FUZZ_CHECK(write(fd, chunk.buf, chunk.len) == (ssize_t)chunk.len);
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	mlk_enc_release(&chunk);
	return fd;
}

/* The module that the seeds name. */
static struct trace_modules *make_modules(void)
{
	const struct mlk_id id = {.len = 2, .bytes = {MLK_ID_BUILD_ID, 0xab}};
	struct trace_modules *images;
	uint32_t number;

	FUZZ_CHECK(!trace_modules_new(&images));
	FUZZ_CHECK(!trace_modules_intern(images, &id, "/x", &number));
	return images;
}

/* Each stack is told once, behind its caller; an ALLOC has one of these. */
static void check_stacks(const struct batch *batch)
{
	bool *told = calloc(batch->nr_stacks + 1, sizeof(*told));

	FUZZ_CHECK(told);
	for (size_t i = 0; i < batch->nr_stacks; i++) {
		const struct batch_stack *stack = &batch->stacks[i];

		FUZZ_CHECK(stack->id && stack->id <= batch->nr_stacks && !told[stack->id]);
		FUZZ_CHECK(!stack->caller || told[stack->caller]);
		told[stack->id] = true;
	}
	for (size_t i = 0; i < batch->nr_events; i++) {
		const struct batch_event *event = &batch->events[i];

		if (event->kind == MLK_ALLOC)
			FUZZ_CHECK(event->stack <= batch->nr_stacks && told[event->stack]);
	}
	free(told);
}

/* As a replay does with a batch. */
static void use_stacks(const struct batch *batch)
{
	struct dwunw_frame frames[FRAMES];
	uint32_t *ids = NULL;
	size_t room = 0;
	struct dwunw *dw;

	FUZZ_CHECK(!dwunw_new(&dw));
	FUZZ_CHECK(!batch_intern(batch, dw, &ids, &room));
	for (size_t i = 0; i < batch->nr_stacks; i++) {
		uint32_t id = ids[batch->stacks[i].id];

		FUZZ_CHECK(id < dwunw_stack_limit(dw));
		FUZZ_CHECK(dwunw_stack_frames(dw, id, frames, FRAMES) <= FRAMES);
		FUZZ_CHECK(dwunw_stack_status(dw, id) < DWUNW_STATUS_NR);
	}
	free(ids);
	dwunw_free(dw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_modules *images;
	const struct mlk_entry *entries;
	struct mlk_cache_key key;
	struct batch batch = {0};
	struct mlk_reader *r;
	size_t nr;
	int err;

	if (size < 4 || size > MLK_RAW_MAX)
		return 0;
	fuzz_memory_limit(MEMORY_MAX);
	images = make_modules();
	FUZZ_CHECK(!mlk_cache_open(&r, write_cache(data, size), &key));
	FUZZ_CHECK(key.trace == 23 && key.unwinder == 47);
	FUZZ_CHECK(!mlk_reader_list(r, &entries, &nr) && nr == 1);
	batch.unwound = entries[0];
	batch.chunk_crc = mlk_get_u32(data);
	err = unwound_chunk_read(r, images, UINT64_MAX, &batch);
	FUZZ_CHECK(!err || err == MLK_E_CORRUPT);
	if (!err) {
		check_stacks(&batch);
		use_stacks(&batch);
	}
	batch_release(&batch);
	mlk_reader_free(r);
	trace_modules_free(images);
	return 0;
}
