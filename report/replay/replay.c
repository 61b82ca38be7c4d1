/* replay.c - the two passes over a trace: first what was mapped where (replay_layout.c), then what
 * happened */
#include "report/replay/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "report/decode/worker_pool.h"
#include "report/replay/overruns.h"
#include "report/replay/results.h"
#include "report/replay/whole_chunks.h"

/* So many events ahead, what they will look at is brought near: where blocks are found, blocks that
 * are freed, what is known of the stacks of these. */
#define SLOTS_AHEAD  24
#define BLOCKS_AHEAD 16
#define STACKS_AHEAD 8

/* One more allocation was made by the stack that the unwinder calls @id. */
static int count_alloc(struct replay *leaks, const struct mlk_event *event, uint32_t id,
		       uint32_t *number)
{
	struct stack *stack;
	uint32_t process;
	int err = live_process_number(leaks->live, event->tgid, &process);

	if (!err)
		err = stacks_add(leaks->stacks, id, process, number);
	if (err)
		return err;
	stack = &leaks->stacks->all[*number];
	stack->allocs++;
	if (!leaks->choice.pid || leaks->choice.pid == event->tgid)
		leaks->status_counts[stack->status]++;
	return 0;
}

/* What is known of the stack of @event's block is brought near. */
static void expect_stack(const struct replay *leaks, const struct batch_event *event,
			 const uint32_t *ids)
{
	const struct live_block *block;
	uint32_t stack = UINT32_MAX;

	if (event->kind == MLK_ALLOC) {
		stack = stacks_number(leaks->stacks, ids[event->stack]);
	} else if (event->kind == MLK_FREE) {
		block = live_expected(leaks->live, event->tgid, event->addr);
		stack = block ? block->stack : stack;
	}
	if (stack != UINT32_MAX)
		stacks_expect(leaks->stacks, stack);
}

/* What events behind event @i will look at is brought near. */
static void expect(const struct replay *leaks, const struct batch *batch, size_t i,
		   const uint32_t *ids)
{
	const struct batch_event *event = &batch->events[i];
	const size_t rest = batch->nr_events - i;

	if (rest > SLOTS_AHEAD)
		live_expect(leaks->live, event[SLOTS_AHEAD].tgid, event[SLOTS_AHEAD].addr);
	if (rest > BLOCKS_AHEAD && event[BLOCKS_AHEAD].kind == MLK_FREE)
		live_expect_free(leaks->live, event[BLOCKS_AHEAD].tgid, event[BLOCKS_AHEAD].addr);
	if (rest > STACKS_AHEAD)
		expect_stack(leaks, &event[STACKS_AHEAD], ids);
}

/* The same for each event, which must not cost a call. */
static inline int apply_event(struct replay *leaks, const struct mlk_event *event, uint32_t id)
{
	uint32_t stack = 0;
	int err = 0;

	if (event->kind == MLK_ALLOC)
		err = count_alloc(leaks, event, id, &stack);
	stack_stats_event(leaks->figures, event);
	if (!err)
		err = live_event(leaks->live, event, stack);
	if (!err && leaks->holders)
		err = address_history_event(leaks->holders, leaks->live, event, stack);
	return err;
}

int replay_event(struct replay *leaks, const struct mlk_event *event, uint32_t id)
{
	return apply_event(leaks, event, id);
}

static int replay_batch(struct replay *leaks, const struct batch *batch, const uint32_t *ids)
{
	struct mlk_event event = {0};
	int err = 0;

	for (size_t i = 0; i < batch->nr_events && !err; i++) {
		uint32_t id = 0;

		expect(leaks, batch, i, ids);
		batch_get_event(&batch->events[i], &event);
		if (leaks->overruns->nr)
			err = overruns_until(leaks->overruns, event.time_ns, leaks->live,
					     leaks->stacks);
		if (event.kind == MLK_ALLOC)
			id = ids[batch->events[i].stack];
		if (!err)
			err = apply_event(leaks, &event, id);
	}
	return err;
}

/* Have the stacks of @opts come from the cache, or kept for it. */
static void use_cache(const struct replay *leaks, struct stack_cache *cache,
		      struct worker_pool_opts *opts)
{
	const struct mlk_condition *condition = &leaks->condition;
	const struct stack_cache_source source = {
		.trace = leaks->trace,
		.of = &leaks->chunks,
		.images = leaks->images,
		.dw = leaks->dw,
		.intact = condition->ended && !condition->chunks_lost &&
			  !condition->bytes_skipped && !condition->index_lied,
		.whole = leaks->chosen.stop_ns == UINT64_MAX,
	};

	stack_cache_begin(cache, &source, opts);
}

/* Take what the cache has of the results in place of the second pass.  That the chunks are whole is
 * examined all the same: else damage would be told by one report and not by the next.  Returns 1, 0
 * if there are none to be used, or MLK_E_CACHE. */
static int use_results(struct replay *leaks, const struct replay_opts *opts)
{
	struct whole_chunks *whole;
	struct save saved = {0};
	int err;

	if (!opts->cache || !opts->plain || leaks->overruns->nr ||
	    !stack_cache_has_results(opts->cache, opts->growth) ||
	    whole_chunks_begin(&whole, leaks->trace))
		return 0;
	err = stack_cache_results(opts->cache, &saved);
	if (!err)
		err = results_load(leaks, opts->growth,
				   (struct load){saved.bytes, saved.bytes + saved.len, false});
	save_release(&saved);
	if (whole_chunks_end(whole) && !err)
		return 1;
	/* if memory was short, or the trace is damaged, nothing is wrong with them */
	if (err != MLK_E_CORRUPT)
		stack_cache_leave_results(opts->cache);
	return MLK_E_CACHE;
}

/* The second pass. */
static int replay_chunks(struct replay *leaks, const struct replay_opts *opts)
{
	struct worker_pool_opts worker_pool_opts = {
		.trace = leaks->trace,
		.dw = leaks->dw,
		.worker = {leaks->trace, leaks->dw, leaks->spaces, leaks->images,
			   leaks->chosen.stop_ns},
		.anew = opts->batch != NULL,
		.nr_threads = opts->nr_threads ? opts->nr_threads : worker_pool_default(),
	};
	struct worker_pool *pool;
	const uint32_t *ids;
	struct batch *batch;
	int more = 0, err;

	if (opts->cache)
		use_cache(leaks, opts->cache, &worker_pool_opts);
	err = use_results(leaks, opts);
	if (err)
		return err < 0 ? err : 0;
	err = worker_pool_new(&pool, &worker_pool_opts);

	while (!err && (more = worker_pool_next(pool, &batch, &ids)) > 0) {
		err = opts->batch ? opts->batch(opts->batch_arg, leaks, batch, ids)
				  : replay_batch(leaks, batch, ids);
		if (opts->cache)
			stack_cache_add(opts->cache, batch);
		if (opts->progress)
			opts->progress(opts->progress_arg, mlk_reader_offset(leaks->trace));
	}
	if (!err && !more)
		condition_merge(&leaks->condition, worker_pool_condition(pool));
	if (!err && !more && opts->cache)
		stack_cache_end(opts->cache, leaks->condition.chunks_lost > 0);
	worker_pool_free(pool);
	return err ? err : more;
}

static void count_outstanding(void *arg, const struct live_block *block)
{
	struct replay *leaks = arg;
	struct stack *stack = &leaks->stacks->all[block->stack];
	struct live_amount amount = sampling_amount(block);

	stack->bytes += amount.bytes;
	stack->blocks += amount.blocks;
	sampling_error_add(&leaks->error, block);
	if (!suspect_blocks_is(&leaks->suspect, block))
		return;
	stack->suspects += amount.blocks;
	live_amount_add(&leaks->suspects, amount);
}

/* Find the end of the recording before it is replayed, and what is chosen. */
static int choose_blocks(struct replay *leaks)
{
	const struct mlk_entry *none;
	const struct mlk_condition *condition = &leaks->condition;
	/* What is written after the end, such as losses counted then, may have later times. */
	uint64_t end_ns = condition->ended || condition->end_ns > condition->last_ns
				  ? condition->end_ns
				  : condition->last_ns;
	size_t nr;
	/* whether the index says what the chunks' headers said is asked alone */
	int err = mlk_reader_list(leaks->trace, &none, &nr);

	leaks->condition.index_lied |= mlk_reader_condition(leaks->trace)->index_lied;
	leaks->chosen = block_filter_of(&leaks->choice, leaks->threads,
					mlk_reader_meta(leaks->trace)->start_ns, end_ns);
	return err;
}

static int collect_trace(struct replay *leaks, const struct replay_opts *opts)
{
	int err = replay_read_layout(leaks);

	if (!err)
		err = choose_blocks(leaks);
	if (!err)
		err = overruns_sort(leaks->overruns, leaks->chosen.stop_ns, leaks->choice.pid);
	if (!err)
		err = replay_chunks(leaks, opts);
	if (!err)
		err = overruns_until(leaks->overruns, UINT64_MAX, leaks->live, leaks->stacks);
	if (!err && leaks->overruns->nr)
		err = overruns_unwind_finders(leaks->overruns, leaks->trace, leaks->dw,
					      leaks->spaces);
	if (err)
		return err;
	live_finish(leaks->live);
	leaks->totals = *live_totals(leaks->live);
	if (leaks->choice.pid)
		processes_totals(leaks->live, leaks->choice.pid, &leaks->totals);
	suspect_blocks_finish(&leaks->suspect, &leaks->condition);
	chosen_each(&leaks->chosen, leaks->live, count_outstanding, leaks);
	return stack_stats_finish(leaks->figures);
}

static void note_change(void *arg, const struct live_change *change)
{
	struct replay *leaks = arg;

	if (!chosen_has(&leaks->chosen, change->block))
		return;
	stack_stats_changed(leaks->figures, change);
	if (leaks->watch.changed)
		leaks->watch.changed(leaks->watch.arg, change);
}

static int start_replay(struct replay *leaks, const struct replay_opts *opts)
{
	const struct mlk_meta *meta = mlk_reader_meta(leaks->trace);
	struct sampling sampling = sampling_of(meta);
	int err = dwunw_new(&leaks->dw);

	if (!err && opts->symfs)
		err = dwunw_symfs_set(leaks->dw, opts->symfs);
	if (!err && opts->mangled)
		dwunw_demangle_set(leaks->dw, false);
	for (size_t i = 0; i < opts->nr_debug_dirs && !err; i++)
		err = dwunw_debug_dir_add(leaks->dw, opts->debug_dirs[i]);
	if (!err)
		err = trace_modules_new(&leaks->images);
	if (!err)
		err = address_spaces_new(&leaks->spaces);
	if (!err)
		err = stacks_new(&leaks->stacks, leaks->dw);
	if (!err)
		err = live_new(&leaks->live);
	if (!err)
		live_set_sampling(leaks->live, &sampling);
	/* of a sample there are no frees of blocks that are not in it */
	if (!err && !meta->whole_life && !sampling_is_on(&sampling))
		live_expect_older(leaks->live);
	if (!err)
		err = thread_names_new(&leaks->processes);
	if (!err)
		err = thread_names_new(&leaks->threads);
	if (!err)
		err = overruns_new(&leaks->overruns);
	if (!err)
		err = stack_stats_new(&leaks->figures, leaks->stacks);
	if (!err)
		stack_stats_set_temporary(leaks->figures, opts->temporary_ns);
	if (!err)
		live_watch(leaks->live, &(struct live_watch){.changed = note_change,
							     .arg = leaks,
							     .in_order = leaks->watch.in_order});
	return err;
}

int replay_new(struct replay **out, struct mlk_reader *trace, const struct replay_opts *opts)
{
	struct replay *leaks = calloc(1, sizeof(*leaks));
	int err;

	*out = NULL;
	if (!leaks)
		return -ENOMEM;
	leaks->trace = trace;
	leaks->watch = opts->watch;
	leaks->holders = opts->holders;
	leaks->accounts = opts->accounts;
	leaks->choice = opts->choice;
	leaks->suspect.stop_ns =
		block_filter_of(&opts->choice, NULL, mlk_reader_meta(trace)->start_ns, 0).stop_ns;
	if (leaks->accounts)
		leaks->accounts->stop_ns = leaks->suspect.stop_ns;
	err = start_replay(leaks, opts);
	if (err)
		replay_free(leaks);
	else
		*out = leaks;
	return err;
}

int replay_collect(struct replay **out, struct mlk_reader *trace, const struct replay_opts *opts)
{
	int err = replay_new(out, trace, opts);

	if (!err)
		err = collect_trace(*out, opts);
	if (err) {
		replay_free(*out);
		*out = NULL;
	}
	return err;
}

uint64_t replay_lost(const struct replay *leaks)
{
	uint64_t all = 0;

	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (replay_is_event_loss(kind))
			all += leaks->condition.losses.count[kind];
	return all;
}

uint64_t replay_allocations(const struct replay *leaks)
{
	uint64_t all = 0;

	for (int status = 0; status < DWUNW_STATUS_NR; status++)
		all += leaks->status_counts[status];
	return all;
}

uint64_t replay_only_counted(const struct replay *leaks)
{
	return leaks->totals.allocated.blocks
		       ? 0
		       : leaks->condition.losses.skipped[MLK_SKIPPED_TRIGGER];
}

const char *replay_missing(const struct replay *leaks, size_t i)
{
	return i < leaks->nr_missing ? leaks->missing[i] : NULL;
}

void replay_free(struct replay *leaks)
{
	if (!leaks)
		return;
	live_free(leaks->live);
	overruns_free(leaks->overruns);
	thread_names_free(leaks->processes);
	stack_stats_free(leaks->figures);
	thread_names_free(leaks->threads);
	origins_release(&leaks->origins);
	memory_samples_release(&leaks->memory);
	trace_marks_release(&leaks->marks);
	stacks_free(leaks->stacks);
	address_spaces_free(leaks->spaces);
	dwunw_free(leaks->dw);
	trace_modules_free(leaks->images);
	free(leaks->missing);
	free(leaks->comm);
	free(leaks);
}
