/* unwind_trace.c - see unwind_trace.h */
#include "tests/bench/unwind_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/reader.h"
#include "report/base/array.h"
#include "report/decode/unwind_history.h"
#include "report/trace/address_spaces.h"
#include "report/trace/trace_modules.h"

struct recorded_keep {
	struct mlk_reader *reader;
	struct trace_modules *images;
	struct address_spaces *spaces;
	struct unwind_history *histories;
	uint8_t *bytes;
};

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "unwind: %s: %s\n", what,
		err <= DWUNW_ERR_ELF ? dwunw_strerror(err) : mlk_strerror(err));
	exit(1);
}

static void read_layout(struct recorded_trace *t)
{
	struct recorded_keep *k = t->keep;
	struct mlk_record record;

	mlk_reader_rewind(k->reader, MLK_RECORD_MAPS | MLK_RECORD_MODULE);
	while (mlk_reader_next(k->reader, &record) > 0)
		check(record.type == MLK_RECORD_MAPS
			      ? address_spaces_add(k->spaces, &record.maps, k->images)
			      : trace_modules_add_piece(k->images, &record.module),
		      "layout");
	check(trace_modules_load(k->images, t->dw), "modules");
	check(address_spaces_prepare(k->spaces, k->images, t->dw), "mappings");
}

/* An event's stack begins on a line of its own, as the last one ended somewhere. */
static size_t add(struct recorded_trace *t, size_t *room, const struct mlk_event *event,
		  size_t used)
{
	struct recorded_keep *k = t->keep;
	struct recorded *r;
	const struct space *space;

	t->all = array_grow(t->all, room, t->nr + 1, sizeof(*t->all));
	check(t->all ? 0 : -12, "memory");
	r = &t->all[t->nr++];
	check(dwunw_regset_prepare(&r->regs, event->regs, event->nr_regs, event->flags & 0xff),
	      "registers");
	check(address_spaces_find(k->spaces, event->tgid, event->time_ns, &space), "mappings");
	r->space = space->modules;
	r->history = unwind_history_get(k->histories, event->tgid, event->tid);
	r->unchanged_from = event->stack_same_from;
	r->stack = (struct dwunw_stack){event->regs[MLK_SP_REG], k->bytes + used, event->stack_len};
	memcpy(k->bytes + used, event->stack, event->stack_len);
	return used + ((event->stack_len + 63) & ~(size_t)63);
}

struct recorded_trace recorded_trace_read(const char *path, size_t max_bytes)
{
	struct recorded_trace t = {.keep = calloc(1, sizeof(*t.keep))};
	struct mlk_record record;
	size_t room = 0, used = 0;

	check(mlk_reader_open_file(&t.keep->reader, path), path);
	check(dwunw_new(&t.dw), "unwinder");
	check(trace_modules_new(&t.keep->images), "modules");
	check(address_spaces_new(&t.keep->spaces), "mappings");
	check(unwind_history_new(&t.keep->histories), "threads");
	t.keep->bytes = aligned_alloc(4096, max_bytes + (1 << 20));
	check(t.keep->bytes ? 0 : -12, "memory");
	read_layout(&t);
	mlk_reader_rewind(t.keep->reader, MLK_RECORD_EVENT);
	while (used < max_bytes && mlk_reader_next(t.keep->reader, &record) > 0)
		if (record.event.kind == MLK_ALLOC)
			used = add(&t, &room, &record.event, used);
	return t;
}

void recorded_trace_release(struct recorded_trace *t)
{
	unwind_history_free(t->keep->histories);
	address_spaces_free(t->keep->spaces);
	dwunw_free(t->dw);
	trace_modules_free(t->keep->images);
	mlk_reader_free(t->keep->reader);
	free(t->keep->bytes);
	free(t->keep);
	free(t->all);
}

struct dwunw_result recorded_capture(const struct recorded *r, const struct dwunw_stack *stack,
				     const struct dwunw_regset *regs, uint32_t flags)
{
	struct dwunw_sample sample = {.regs = regs,
				      .stack = stack,
				      .stale_from = UINT64_MAX,
				      .unchanged_from = UINT64_MAX,
				      .flags = flags};
	struct dwunw_result result;

	if (dwunw_capture(r->space, &sample, NULL, 0, &result))
		exit(1);
	return result;
}

struct dwunw_result recorded_capture_next(const struct recorded *r, uint64_t unchanged_from)
{
	struct dwunw_sample sample = {.regs = &r->regs,
				      .stack = &r->stack,
				      .stale_from = UINT64_MAX,
				      .history = r->history,
				      .unchanged_from = unchanged_from};
	struct dwunw_result result;

	if (dwunw_capture(r->space, &sample, NULL, 0, &result))
		exit(1);
	return result;
}
