/* fuzz_results.c - results of a replay that a cache keeps, with changes, as the next report reads
 * them
 *
 * The results are those of some events here.  The input is a length to which they are cut, 0: they
 * are not, and then changes: an offset of 4 bytes, and a byte that is to be there.
 */
#include "report/replay/results.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_MAX (512u << 20)
#define FRAMES	   64
#define EVENTS	   400
#define WIDE_NS	   700000000u /* so much lies between two events: growth has wide slices */

/* A replay of a trace that has one module. */
struct subject {
	struct mlk_enc trace;
	struct mlk_reader *reader;
	struct growth *growth;
	struct replay *leaks;
};

static void begin(struct subject *s)
{
	const struct mlk_chunk header = {.type = MLK_CHUNK_UNWOUND, .raw_len = 1, .nr_records = 1};
	const struct mlk_id id = {.len = 2, .bytes = {MLK_ID_BUILD_ID, 0xab}};
	struct replay_opts opts = {0};
	uint32_t number;

	*s = (struct subject){0};
	fuzz_file_header(&s->trace, MLK_STACK_FILTERED);
	fuzz_chunk(&s->trace, header, "", 1);
	FUZZ_CHECK(!mlk_reader_open_mem(&s->reader, s->trace.buf, s->trace.len));
	FUZZ_CHECK(!growth_new(&s->growth));
	opts.watch = (struct live_watch){.changed = growth_changed, .arg = s->growth};
	FUZZ_CHECK(!replay_new(&s->leaks, s->reader, &opts));
	FUZZ_CHECK(!trace_modules_intern(s->leaks->images, &id, "/x", &number));
	s->leaks->chosen =
		block_filter_of(&opts.choice, s->leaks->threads, 1, (uint64_t)EVENTS * WIDE_NS);
}

static void end(struct subject *s)
{
	replay_free(s->leaks);
	growth_free(s->growth);
	mlk_reader_free(s->reader);
	mlk_enc_release(&s->trace);
}

/* Some stacks of one root. */
static uint32_t stack_of(struct dwunw *dw, unsigned int i)
{
	uint32_t id;

	FUZZ_CHECK(!dwunw_stack_intern(dw, NULL, 0, DWUNW_STATUS_ENDED, &id));
	for (unsigned int depth = 0; depth <= i % 5; depth++) {
		const struct dwunw_frame frame = {.pc = 0x1000 + 16 * i + depth,
						  .addr = 0x1000 + 16 * i + depth,
						  .module = DWUNW_NO_MODULE};

		FUZZ_CHECK(!dwunw_stack_add(dw, id, &frame, &id));
	}
	return id;
}

/* Of all kinds: blocks that stay, are freed, or were there before, mappings, and a child. */
static void replay_events(struct subject *s)
{
	for (unsigned int i = 0; i < EVENTS; i++) {
		struct mlk_event event = {.kind = i % 3 ? MLK_ALLOC : MLK_FREE,
					  .func = i % 7 ? MLK_FUNC_MALLOC : MLK_FUNC_MMAP,
					  .tgid = i > EVENTS / 2 && i % 2 ? 8 : 7,
					  .tid = 7,
					  .addr = 0x10000 + 0x10000ull * (i % 61),
					  .size = 47 + i,
					  .time_ns = 1 + (uint64_t)i * WIDE_NS};

		if (i == EVENTS / 2)
			event = (struct mlk_event){.kind = MLK_FORK,
						   .tgid = 8,
						   .tid = 8,
						   .addr = 7,
						   .time_ns = event.time_ns};
		FUZZ_CHECK(!replay_event(s->leaks, &event, stack_of(s->leaks->dw, i % 23)));
	}
}

/* As replay_collect() and a report go on. */
static void finish(struct subject *s)
{
	live_finish(s->leaks->live);
	FUZZ_CHECK(!stack_stats_finish(s->leaks->figures));
	FUZZ_CHECK(!growth_finish(s->growth, s->leaks->live, &s->leaks->chosen, 0));
}

static void check_block(void *arg, const struct live_block *block)
{
	FUZZ_CHECK(block->stack < ((const struct replay *)arg)->stacks->nr);
}

static void check_depth(const struct dwunw *dw, uint32_t id)
{
	struct dwunw_frame frame;

	for (size_t depth = 0; dwunw_stack_frames(dw, id, &frame, 1); depth++) {
		FUZZ_CHECK(depth < MLK_MAX_FRAMES);
		id = dwunw_stack_parent(dw, id);
	}
}

static void use(struct subject *s)
{
	const struct stacks *stacks = s->leaks->stacks;
	struct dwunw_frame frames[FRAMES];

	live_each(s->leaks->live, check_block, s->leaks);
	for (uint32_t i = 0; i < stacks->nr; i++) {
		FUZZ_CHECK(stacks->all[i].id < dwunw_stack_limit(stacks->dw));
		FUZZ_CHECK(stacks->all[i].status < DWUNW_STATUS_NR);
		FUZZ_CHECK(stacks->all[i].process < live_nr_processes(s->leaks->live));
		FUZZ_CHECK(dwunw_stack_frames(stacks->dw, stacks->all[i].id, frames, FRAMES) <=
			   FRAMES);
		check_depth(stacks->dw, stacks->all[i].id);
		(void)growth_of(s->growth, &i, 1);
	}
	(void)growth_of_all(s->growth);
}

/* The same bytes come from what was read. */
static void check_same(const struct save *results)
{
	struct save again = {0};
	struct subject s;

	begin(&s);
	FUZZ_CHECK(
		!results_load(s.leaks, s.growth,
			      (struct load){results->bytes, results->bytes + results->len, false}));
	finish(&s);
	use(&s);
	results_save(s.leaks, s.growth, &again);
	FUZZ_CHECK(!again.failed && again.len == results->len);
	FUZZ_CHECK(!memcmp(again.bytes, results->bytes, again.len));
	save_release(&again);
	end(&s);
}

/* The results without changes: made once. */
static const struct save *make_results(void)
{
	static struct save results;
	struct subject s;

	if (results.len)
		return &results;
	begin(&s);
	replay_events(&s);
	finish(&s);
	results_save(s.leaks, s.growth, &results);
	FUZZ_CHECK(!results.failed && results.len);
	end(&s);
	check_same(&results);
	return &results;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct save *results = make_results();
	struct fuzz_in in = {data, data + size};
	size_t len = (size_t)fuzz_take(&in, 4);
	uint8_t *bytes = malloc(results->len);
	struct subject s;
	int err;

	FUZZ_CHECK(bytes);
	memcpy(bytes, results->bytes, results->len);
	len = len && len < results->len ? len : results->len;
	while (fuzz_left(&in) >= 5) {
		size_t at = (size_t)fuzz_take(&in, 4);

		bytes[at % results->len] = (uint8_t)fuzz_take(&in, 1);
	}
	fuzz_memory_limit(MEMORY_MAX);
	begin(&s);
	err = results_load(s.leaks, s.growth, (struct load){bytes, bytes + len, false});
	FUZZ_CHECK(!err || err == MLK_E_CORRUPT);
	if (!err) {
		finish(&s);
		use(&s);
	}
	end(&s);
	free(bytes);
	return 0;
}
