/* replay.c - the two passes over a trace: first what was mapped where (leaks_layout.c), then what
 * happened */
#include "report/replay/leaks_state.h"

#include <errno.h>
#include <stdlib.h>

#include "report/trace/condition.h"
#include "report/decode/worker_pool.h"
#include "report/replay/finders.h"

#define AHEAD 8 /* events, of which the blocks are brought near */

/* One more allocation was made by the stack that the unwinder calls @id. */
static int count_alloc(struct leaks *leaks, const struct mlk_event *event, uint32_t id,
		       uint32_t *number)
{
	struct stack *stack;
	uint32_t process;
	int err = live_process_number(leaks->live, event->tgid, &process);

	if (!err)
		err = stacks_add(leaks->stacks, id, process, number);
	if (err)
		return err;
	stack = stacks_get(leaks->stacks, *number);
	stack->allocs++;
	if (!leaks->choice.pid || leaks->choice.pid == event->tgid)
		leaks->status_counts[stack->status]++;
	return 0;
}

/* What @event will look at is brought near. */
static void expect(const struct leaks *leaks, const struct batch_event *event, const uint32_t *ids)
{
	live_expect(leaks->live, event->tgid, event->addr);
	if (event->kind == MLK_ALLOC)
		stacks_expect(leaks->stacks, ids[event->stack]);
}

static int replay_batch(struct leaks *leaks, const struct batch *batch, const uint32_t *ids)
{
	struct mlk_event event = {0};
	int err = 0;

	for (size_t i = 0; i < batch->nr_events && !err; i++) {
		uint32_t stack = 0;

		if (i + AHEAD < batch->nr_events)
			expect(leaks, &batch->events[i + AHEAD], ids);
		batch_get_event(&batch->events[i], &event);
		if (overruns_nr(leaks->overruns))
			err = overruns_until(leaks->overruns, event.time_ns, leaks->live,
					     leaks->stacks);
		if (!err && event.kind == MLK_ALLOC)
			err = count_alloc(leaks, &event, ids[batch->events[i].stack], &stack);
		figures_event(leaks->figures, &event);
		if (!err)
			err = live_event(leaks->live, &event, stack);
		if (!err && leaks->holders)
			err = holders_event(leaks->holders, leaks->live, &event, stack);
	}
	return err;
}

/* The second pass. */
static int replay(struct leaks *leaks, const struct leaks_opts *opts)
{
	const struct crew_opts crew_opts = {
		.trace = leaks->trace,
		.dw = leaks->dw,
		.spaces = leaks->spaces,
		.images = leaks->images,
		.stop_ns = leaks->chosen.stop_ns,
		.anew = opts->batch != NULL,
		.nr_threads = opts->nr_threads ? opts->nr_threads : crew_default(),
	};
	const struct batch *batch;
	const uint32_t *ids;
	struct crew *crew;
	int more = 0, err = crew_new(&crew, &crew_opts);

	while (!err && (more = crew_next(crew, &batch, &ids)) > 0) {
		err = opts->batch ? opts->batch(opts->batch_arg, leaks, batch, ids)
				  : replay_batch(leaks, batch, ids);
		if (opts->progress)
			opts->progress(opts->progress_arg, mlk_reader_offset(leaks->trace));
	}
	if (!err && !more)
		condition_merge(&leaks->condition, crew_condition(crew));
	crew_free(crew);
	return err ? err : more;
}

static void count_outstanding(void *arg, const struct live_block *block)
{
	struct leaks *leaks = arg;
	struct stack *stack = stacks_get(leaks->stacks, block->stack);
	struct live_amount amount = sampling_amount(block);

	stack->bytes += amount.bytes;
	stack->blocks += amount.blocks;
	sampling_error_add(&leaks->error, block);
	if (!suspect_is(&leaks->suspect, block))
		return;
	stack->suspects += amount.blocks;
	leaks->suspects.blocks += amount.blocks;
	leaks->suspects.bytes += amount.bytes;
}

/* Find the end of the recording before it is replayed, and what is chosen. */
static int choose(struct leaks *leaks)
{
	const struct mlk_entry *none;
	const struct mlk_condition *condition = &leaks->condition;
	uint64_t end_ns =
		condition->end_ns > condition->last_ns ? condition->end_ns : condition->last_ns;
	size_t nr;
	/* whether the index says what the chunks' headers said is asked alone */
	int err = mlk_reader_list(leaks->trace, &none, &nr);

	condition_merge(&leaks->condition, mlk_reader_condition(leaks->trace));
	leaks->chosen = choice_of(&leaks->choice, leaks->threads,
				  mlk_reader_meta(leaks->trace)->start_ns, end_ns);
	return err;
}

static int collect(struct leaks *leaks, const struct leaks_opts *opts)
{
	int err = leaks_read_layout(leaks);

	if (!err)
		err = choose(leaks);
	if (!err)
		err = overruns_sort(leaks->overruns, leaks->chosen.stop_ns, leaks->choice.pid);
	if (!err)
		err = replay(leaks, opts);
	if (!err)
		err = overruns_until(leaks->overruns, UINT64_MAX, leaks->live, leaks->stacks);
	if (!err && overruns_nr(leaks->overruns))
		err = finders_unwind(leaks->overruns, leaks->trace, leaks->dw, leaks->spaces);
	if (err)
		return err;
	live_finish(leaks->live);
	leaks->totals = *live_totals(leaks->live);
	if (leaks->choice.pid)
		processes_totals(leaks->live, leaks->choice.pid, &leaks->totals);
	suspect_finish(&leaks->suspect, &leaks->condition);
	chosen_each(&leaks->chosen, leaks->live, count_outstanding, leaks);
	return figures_finish(leaks->figures);
}

static void note_change(void *arg, const struct live_change *change)
{
	struct leaks *leaks = arg;

	if (!chosen_has(&leaks->chosen, change->block))
		return;
	figures_changed(leaks->figures, change);
	if (leaks->watch.changed)
		leaks->watch.changed(leaks->watch.arg, change);
}

static int start(struct leaks *leaks, const struct leaks_opts *opts)
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
		err = images_new(&leaks->images);
	if (!err)
		err = spaces_new(&leaks->spaces);
	if (!err)
		err = stacks_new(&leaks->stacks, leaks->dw);
	if (!err)
		err = live_new(&leaks->live);
	if (!err)
		live_set_sampling(leaks->live, &sampling);
	if (!err)
		err = processes_new(&leaks->processes);
	if (!err)
		err = thread_names_new(&leaks->threads);
	if (!err)
		err = overruns_new(&leaks->overruns);
	if (!err)
		err = figures_new(&leaks->figures, leaks->stacks);
	if (!err)
		figures_set_temporary(leaks->figures, opts->temporary_ns);
	if (!err)
		live_watch(leaks->live,
			   &(struct live_watch){note_change, leaks, leaks->watch.in_order});
	return err;
}

int leaks_collect(struct leaks **out, struct mlk_reader *trace, const struct leaks_opts *opts)
{
	struct leaks *leaks = calloc(1, sizeof(*leaks));
	int err;

	*out = NULL;
	if (!leaks)
		return -ENOMEM;
	leaks->trace = trace;
	leaks->watch = opts->watch;
	leaks->holders = opts->holders;
	leaks->choice = opts->choice;
	leaks->suspect.stop_ns =
		choice_of(&opts->choice, NULL, mlk_reader_meta(trace)->start_ns, 0).stop_ns;
	err = start(leaks, opts);
	if (!err)
		err = collect(leaks, opts);
	if (err)
		leaks_free(leaks);
	else
		*out = leaks;
	return err;
}

const struct live_totals *leaks_totals(const struct leaks *leaks)
{
	return &leaks->totals;
}

const struct sampling_error *leaks_error(const struct leaks *leaks)
{
	return &leaks->error;
}

struct live_amount leaks_suspect(const struct leaks *leaks)
{
	return leaks->suspects;
}

bool leaks_suspect_times(const struct leaks *leaks, uint64_t *from_ns, uint64_t *to_ns)
{
	return suspect_times(&leaks->suspect, from_ns, to_ns);
}

bool leaks_chunks_matter(const struct leaks *leaks)
{
	return leaks->suspect.chunks;
}

const uint64_t *leaks_losses_that_matter(const struct leaks *leaks)
{
	return leaks->suspect.in_time;
}

struct live_amount leaks_peak(const struct leaks *leaks)
{
	return figures_peak(leaks->figures);
}

const struct chosen *leaks_chosen(const struct leaks *leaks)
{
	return &leaks->chosen;
}

const struct stacks *leaks_stacks(const struct leaks *leaks)
{
	return leaks->stacks;
}

struct dwunw *leaks_unwinder(const struct leaks *leaks)
{
	return leaks->dw;
}

const struct images *leaks_images(const struct leaks *leaks)
{
	return leaks->images;
}

const struct overruns *leaks_overruns(const struct leaks *leaks)
{
	return leaks->overruns;
}

uint64_t leaks_status_count(const struct leaks *leaks, enum dwunw_status status)
{
	return leaks->status_counts[status];
}

const struct live *leaks_live(const struct leaks *leaks)
{
	return leaks->live;
}

const struct processes *leaks_processes(const struct leaks *leaks)
{
	return leaks->processes;
}

const char *leaks_comm(const struct leaks *leaks)
{
	return leaks->comm;
}

const struct mlk_condition *leaks_condition(const struct leaks *leaks)
{
	return &leaks->condition;
}

size_t leaks_ignored_snapshots(const struct leaks *leaks)
{
	return spaces_ignored(leaks->spaces);
}

const char *leaks_missing(const struct leaks *leaks, size_t i)
{
	return i < leaks->nr_missing ? leaks->missing[i] : NULL;
}

void leaks_free(struct leaks *leaks)
{
	if (!leaks)
		return;
	live_free(leaks->live);
	overruns_free(leaks->overruns);
	processes_free(leaks->processes);
	figures_free(leaks->figures);
	thread_names_free(leaks->threads);
	stacks_free(leaks->stacks);
	spaces_free(leaks->spaces);
	dwunw_free(leaks->dw);
	images_free(leaks->images);
	free(leaks->missing);
	free(leaks->comm);
	free(leaks);
}
