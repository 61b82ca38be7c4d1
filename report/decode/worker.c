/* worker.c - see worker.h */
#include "report/decode/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/decode/event_unwinder.h"
#include "report/decode/stored_stacks.h"
#include "report/decode/unwound_chunk.h"

#define KEPT_LEVEL 1 /* of zstd: what is kept takes little time */

struct worker {
	struct mlk_reader *trace;
	struct mlk_reader *cache;     /* NULL: there is none */
	struct stored_stacks *stacks; /* for a cache that is made; both NULL: none is */
	struct mlk_cache_encoder *encoder;
	struct dwunw *dw;
	struct address_spaces *spaces;
	struct event_unwinder *capture;
	const struct trace_modules *images;
	uint64_t stop_ns;
	bool *told; /* by id: a batch has had that stack */
	size_t told_room;
	uint32_t *path; /* stacks to be sent */
	size_t path_room;
};

/* What a worker needs of a cache.  Returns as worker_new(). */
static int use_cache(struct worker *worker, const struct worker_opts *opts)
{
	int err = opts->cache ? mlk_reader_clone(&worker->cache, opts->cache) : 0;

	if (!err && opts->keep)
		err = stored_stacks_new(&worker->stacks, worker->dw, worker->images);
	if (!err && opts->keep)
		err = mlk_cache_encoder_new(&worker->encoder, KEPT_LEVEL);
	return err;
}

int worker_new(struct worker **out, const struct worker_opts *opts)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	bool raw = mlk_reader_meta(opts->trace)->stack_mode == MLK_STACK_RAW;
	int err;

	*out = NULL;
	if (!worker)
		return -ENOMEM;
	worker->stop_ns = opts->stop_ns;
	worker->images = opts->images;
	err = mlk_reader_clone(&worker->trace, opts->trace);
	if (!err)
		err = dwunw_clone(&worker->dw, opts->dw);
	if (!err)
		err = address_spaces_share(&worker->spaces, opts->spaces, worker->dw);
	if (!err)
		err = event_unwinder_new(&worker->capture, worker->dw, worker->spaces, raw);
	if (!err)
		err = use_cache(worker, opts);
	if (err)
		worker_free(worker);
	else
		*out = worker;
	return err;
}

/* Send stack @id, whose caller was sent. */
static int tell_one(struct worker *worker, struct batch *batch, uint32_t id)
{
	struct batch_stack stack = {.id = id, .status = DWUNW_STATUS_ENDED};

	if (dwunw_stack_frames(worker->dw, id, &stack.frame, 1))
		stack.caller = dwunw_stack_parent(worker->dw, id);
	else
		stack.status = dwunw_stack_status(worker->dw, id);
	worker->told[id] = true;
	return batch_add_stack(batch, &stack);
}

/* Tell of stack @id and of those callers that are new, the outermost first. */
static int tell_stack(struct worker *worker, struct batch *batch, uint32_t id)
{
	size_t nr = 0;
	/* know of each id returned so far whether it was sent */
	int err = array_cover(&worker->told, &worker->told_room, dwunw_stack_limit(worker->dw),
			      sizeof(*worker->told));

	for (; !err && id && !worker->told[id]; id = dwunw_stack_parent(worker->dw, id))
		err = array_append(&worker->path, &nr, &worker->path_room, &id, sizeof(id));
	while (!err && nr)
		err = tell_one(worker, batch, worker->path[--nr]);
	return err;
}

static int read_event(struct worker *worker, const struct mlk_event *event, struct batch *batch)
{
	uint32_t stack = 0;
	int err = 0;

	/* A new process may have the number of one that has ended. */
	if (event->kind == MLK_EXEC || event->kind == MLK_FORK || event->kind == MLK_EXIT)
		event_unwinder_forget(worker->capture, event->tgid);
	if (event->kind == MLK_ALLOC)
		err = event_unwinder_stack(worker->capture, event, &stack);
	if (!err && stack && (stack >= worker->told_room || !worker->told[stack]))
		err = tell_stack(worker, batch, stack);
	return err ? err : batch_add_event(batch, event, stack);
}

static int take_record(struct worker *worker, const struct mlk_record *record, struct batch *batch)
{
	if (record->event.time_ns > worker->stop_ns)
		return 0;
	if (record->type == MLK_RECORD_EVENT)
		return read_event(worker, &record->event, batch);
	event_unwinder_add(worker->capture, &record->event);
	return 0;
}

/* Decode the chunk and unwind its stacks. */
static int unwind_chunk(struct worker *worker, struct batch *batch)
{
	struct mlk_record record;
	int more, err;

	event_unwinder_begin(worker->capture, batch->previous);
	err = mlk_reader_seek(worker->trace, &batch->chunk, MLK_RECORD_EVENT | MLK_RECORD_STACK);
	while (!err && (more = mlk_reader_next(worker->trace, &record)) != 0)
		err = more < 0 ? more : take_record(worker, &record, batch);
	return err;
}

/* Have @batch ready for a cache; without that there is none. */
static void keep_stacks(struct worker *worker, struct batch *batch)
{
	struct mlk_unwound unwound;

	if (!stored_stacks_gather(worker->stacks, batch, NULL, &unwound))
		(void)mlk_cache_encode(worker->encoder, worker->trace, &unwound, &batch->kept);
}

/* Take the stacks that the cache has.  That the trace's own chunk is whole is examined all the
 * same: else it would be told as lost. */
static void read_cached(struct worker *worker, struct batch *batch)
{
	batch->own_ids = true;
	batch->err = mlk_reader_check(worker->trace, &batch->chunk);
	batch->condition = *mlk_reader_condition(worker->trace);
	if (batch->err)
		batch->err = batch->err == MLK_E_CORRUPT ? MLK_E_CACHE : batch->err;
	else if (unwound_chunk_read(worker->cache, worker->images, worker->stop_ns, batch))
		batch->err = MLK_E_CACHE;
}

void worker_read(struct worker *worker, struct batch *batch)
{
	bool unused;

	batch->err = MLK_E_CORRUPT;
	batch->of_kernel = mlk_reader_meta(worker->trace)->of_kernel;
	if (batch->in_cache) {
		read_cached(worker, batch);
		return;
	}
	/* The heads of events there say nothing of origins. */
	if (batch->of_kernel)
		batch->unwound.records = 0;
	if (batch->unwound.records)
		batch->err =
			unwound_chunk_read(worker->trace, worker->images, worker->stop_ns, batch);
	batch->own_ids = !batch->err;
	unused = batch->unwound.records && batch->err == MLK_E_CORRUPT;
	if (batch->err == MLK_E_CORRUPT) {
		batch_clear(batch);
		batch->err = unwind_chunk(worker, batch);
	}
	batch->condition = *mlk_reader_condition(worker->trace);
	batch->condition.unwound_unused = unused;
	if (worker->encoder && !batch->err && batch->chunk.records & MLK_RECORD_EVENT &&
	    !batch->condition.chunks_lost)
		keep_stacks(worker, batch);
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	stored_stacks_free(worker->stacks);
	mlk_cache_encoder_free(worker->encoder);
	mlk_reader_free(worker->cache);
	event_unwinder_free(worker->capture);
	address_spaces_free(worker->spaces);
	dwunw_free(worker->dw);
	mlk_reader_free(worker->trace);
	free(worker->told);
	free(worker->path);
	free(worker);
}
