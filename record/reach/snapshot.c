/* snapshot.c - see snapshot.h */
#include "record/reach/snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/reach/beside.h"
#include "record/reach/frozen.h"
#include "record/reach/moving.h"
#include "record/reach/pace.h"
#include "record/reach/registers.h"
#include "record/reach/roots.h"
#include "record/reach/walk.h"

#define SETTLE_NS 20000000u /* how long after a pass a thread that runs may not have been seen */

/* Words on their way from the thread that walks to the one that writes. */
struct parcel {
	struct mlk_pointer words[MLK_MAX_POINTERS];
	size_t nr; /* 0: it is empty */
};

struct reach_snapshot {
	struct reach_opts opts;
	struct reach_result result;
	int event;
	struct maps maps;
	struct reach_walk walk; /* the thread's while it runs, */
	struct frozen frozen;	/* and this */
	bool prepares;		/* the thread only makes room in frozen */
	struct pace pace;	/* the thread's while it runs */
	struct reach_threads threads;
	struct reach_roots roots;
	uint64_t begin_ns, next_ns, pause_ns; /* pause_ns: after this pass, at least */
	uint64_t settle_ns; /* until when registers are awaited after the walk; 0: it goes on */
	unsigned int done;  /* passes */
	pthread_t thread;
	bool runs;
	_Atomic bool cancelled;
	struct reach_beside beside; /* the thread's while it runs, */
	struct moving moving;	    /* and this, */
	bool goes_on;		    /* and this: the pass that was the last planned one is not */
	/* guarded by lock: */
	pthread_mutex_t lock;
	pthread_cond_t taken;
	bool over; /* the thread is at its end, with err at end_ns */
	int err;
	uint64_t end_ns;
	struct parcel parcel;
};

static void wake(struct reach_snapshot *s)
{
	const uint64_t one = 1;

	/* it can only be refused when it was told already */
	(void)!write(s->event, &one, sizeof(one));
}

/* In the thread: wait until the words before were taken. */
static int hand_over(void *arg, const struct mlk_pointer *words, size_t nr)
{
	struct reach_snapshot *s = arg;
	uint64_t begin_ns = clock_now_ns();

	if (s->opts.most_passes > s->opts.passes)
		moving_take(&s->moving, words, nr);
	pthread_mutex_lock(&s->lock);
	while (s->parcel.nr && !s->cancelled)
		pthread_cond_wait(&s->taken, &s->lock);
	s->pace.slept_ns += clock_now_ns() - begin_ns;
	if (!s->cancelled) {
		memcpy(s->parcel.words, words, nr * sizeof(*words));
		s->parcel.nr = nr;
	}
	pthread_mutex_unlock(&s->lock);
	wake(s);
	return s->cancelled ? -ECANCELED : 0;
}

static bool is_last(const struct reach_snapshot *s)
{
	return s->done + 1 >= s->opts.passes && !s->goes_on;
}

/* In the thread: walk, and see whether that is enough, and who else wants the processor.  Returns
 * as reach_walk_run(). */
static int walk(struct reach_snapshot *s, uint64_t *end_ns)
{
	const unsigned int passes = s->done + 1;
	uint64_t begin_ns = clock_now_ns();
	int err = reach_walk_run(&s->walk);

	*end_ns = clock_now_ns();
	if (!err && s->opts.most_passes > s->opts.passes)
		s->goes_on =
			moving_end_pass(&s->moving, begin_ns, *end_ns, s->walk.words, passes) &&
			passes < s->opts.most_passes;
	return err;
}

static void *run(void *arg)
{
	struct reach_snapshot *s = arg;
	const struct heap_place place = {.mem = s->walk.mem,
					 .pagemap = s->walk.pagemap,
					 .ranges = s->walk.ranges,
					 .nr = s->walk.nr,
					 .maps = &s->maps,
					 .stop = &s->cancelled,
					 .slept_ns = &s->pace.slept_ns};
	uint64_t end_ns = 0;
	int err;

	/* the session's other work is urgent: this is not, unless the process waits for it */
	if (!s->opts.still && getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	s->pace = pace_begin();
	beside_before(&s->beside, &place);
	err = s->prepares ? frozen_prepare(&s->frozen, s->walk.pagemap, s->walk.ranges, s->walk.nr)
			  : walk(s, &end_ns);
	if (!err && !s->prepares)
		beside_after(&s->beside, &place, is_last(s));
	s->pause_ns = s->opts.still ? 0 : pace_pause(&s->pace);
	pthread_mutex_lock(&s->lock);
	s->over = true;
	s->err = err;
	s->end_ns = end_ns;
	pthread_mutex_unlock(&s->lock);
	wake(s);
	return NULL;
}

static void end_pass(struct reach_snapshot *s)
{
	if (s->walk.mem >= 0)
		close(s->walk.mem);
	if (s->walk.pagemap >= 0)
		close(s->walk.pagemap);
	free(s->walk.ranges);
	frozen_release(&s->frozen);
	reach_threads_release(&s->threads);
	reach_roots_release(&s->roots);
	s->settle_ns = 0;
	s->walk = (struct reach_walk){.mem = -1, .pagemap = -1};
}

static int start_thread(struct reach_snapshot *s)
{
	sigset_t all, before;
	int err;

	s->over = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->runs = !err;
	return -err;
}

/* Look at the registers, and at what the kernel keeps.  Returns 0 or -errno. */
static int read_roots(struct reach_snapshot *s)
{
	const struct target *t = s->opts.target;
	int err = roots_read(t, &s->roots);

	/* what cannot be read holds nothing: the blocks are in the report then */
	if (err == -ENOMEM)
		return err;
	if (s->opts.regs)
		task_regs_sample(s->opts.regs, t->pid);
	return registers_read(t, s->opts.regs, &s->threads, &s->roots);
}

static int begin_pass(struct reach_snapshot *s)
{
	const struct target *t = s->opts.target;
	int err;

	s->goes_on = false; /* as far as is known */
	s->begin_ns = clock_now_ns();
	err = target_read_maps(t, &s->maps);
	if (!err)
		err = reach_ranges(s->maps.v, s->maps.nr, &s->walk.ranges, &s->walk.nr);
	/* on some kernels the list of one that has no memory any more is empty */
	if (!err && !s->walk.nr)
		err = -ESRCH;
	if (!err)
		err = read_roots(s);
	if (!err) {
		s->walk.mem = target_open_file(t, HELPER_MEM);
		s->walk.pagemap = target_open_file(t, HELPER_PAGEMAP);
		err = s->walk.mem < 0 ? s->walk.mem : s->walk.pagemap < 0 ? s->walk.pagemap : 0;
	}
	if (!err && s->beside.smaps_fd < 0 && (is_last(s) || s->opts.stop))
		s->beside.smaps_fd = target_open_file(t, HELPER_SMAPS);
	s->walk.sink = hand_over;
	s->walk.stop = &s->cancelled;
	s->walk.arg = s;
	s->prepares = s->opts.stop;
	return err ? err : start_thread(s);
}

/* Go by what was copied in place of what was read before.  Returns 0 or -ENOMEM. */
static int take_frozen(struct reach_snapshot *s)
{
	const struct mlk_reach_thread *threads;
	size_t nr;
	int err = frozen_maps(&s->frozen, &s->maps);

	free(s->walk.ranges);
	s->walk.ranges = NULL;
	s->walk.nr = 0;
	if (!err)
		err = reach_ranges(s->maps.v, s->maps.nr, &s->walk.ranges, &s->walk.nr);
	threads = frozen_threads(&s->frozen, &nr);
	reach_threads_release(&s->threads);
	for (size_t i = 0; i < nr && !err; i++) {
		err = grow_array(&s->threads.v, i, &s->threads.room, sizeof(*threads));
		if (!err)
			s->threads.v[s->threads.nr++] = threads[i];
	}
	/* what was added meanwhile */
	return err ? err : roots_read(s->opts.target, &s->roots);
}

/* There is room for a copy, unless @err: make it, and walk through that.  Where it cannot be
 * stopped, it is read while it runs. */
static int stop_and_walk(struct reach_snapshot *s, int err)
{
	s->prepares = false;
	if (!err)
		err = frozen_take(&s->frozen, s->opts.target);
	if (err) {
		s->result.stop_err = err;
		s->opts.stop = false;
		frozen_release(&s->frozen);
		return start_thread(s);
	}
	err = take_frozen(s);
	if (err)
		return err;
	if (s->opts.regs)
		task_regs_sample(s->opts.regs, 0);
	s->walk.frozen = &s->frozen;
	s->opts.passes = s->opts.most_passes = 1;
	s->opts.still = true;
	s->begin_ns = s->frozen.header->begin_ns;
	s->result.stopped_ns = s->frozen.header->end_ns - s->begin_ns;
	return start_thread(s);
}

int reach_snapshot_begin(struct reach_snapshot **out, const struct reach_opts *opts)
{
	struct reach_snapshot *s = calloc(1, sizeof(*s));
	int err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->taken, NULL);
	s->walk.mem = s->walk.pagemap = s->frozen.fd = -1;
	beside_begin(&s->beside, opts->heap);
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->event < 0 ? -errno : begin_pass(s);
	if (err)
		reach_snapshot_end(s);
	else
		*out = s;
	return err;
}

int reach_snapshot_fd(const struct reach_snapshot *s)
{
	return s->event;
}

static int write_pass(struct reach_snapshot *s, struct mlk_writer *w)
{
	const struct mlk_pass pass = {
		.tgid = (uint32_t)s->opts.target->pid,
		.pass = s->opts.first_pass + s->done,
		.snapshot = s->opts.snapshot,
		.flags = (is_last(s) ? MLK_PASS_LAST : 0) | (s->opts.still ? MLK_PASS_STOPPED : 0),
		.begin_ns = s->begin_ns,
		.end_ns = s->walk.frozen ? s->frozen.header->end_ns : s->end_ns,
		.words = s->walk.words,
		.ranges = s->walk.ranges,
		.nr_ranges = s->walk.nr,
		.threads = s->threads.v,
		.nr_threads = s->threads.nr,
		.roots = s->roots.v,
		.nr_roots = s->roots.nr,
	};
	struct reach_result *r = &s->result;

	r->read_bytes = r->unread_bytes = 0;
	for (size_t i = 0; i < pass.nr_ranges; i++) {
		const struct mlk_range *range = &pass.ranges[i];

		r->unread_bytes += range->unread;
		r->read_bytes += range->end - range->start - range->absent - range->unread;
	}
	r->words = pass.words;
	r->passes++;
	return mlk_writer_pass(w, &pass);
}

/* Take what the thread has handed over.  Returns as the writer; *@over: there will be no more. */
static int take_words(struct reach_snapshot *s, struct mlk_writer *w, bool *over)
{
	const uint32_t pass = s->opts.first_pass + s->done;
	struct mlk_pointers pointers = {.tgid = (uint32_t)s->opts.target->pid, .pass = pass};
	int err = 0;

	pthread_mutex_lock(&s->lock);
	pointers.nr = s->parcel.nr;
	*over = s->over;
	pthread_mutex_unlock(&s->lock);
	if (!pointers.nr)
		return 0;
	/* the thread leaves it alone until it is empty */
	pointers.words = s->parcel.words;
	err = mlk_writer_pointers(w, &pointers, clock_now_ns());
	pthread_mutex_lock(&s->lock);
	s->parcel.nr = 0;
	pthread_cond_signal(&s->taken);
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* What was read beside the passes, behind the last one, whose mappings are still known. */
static int write_beside(struct reach_snapshot *s, struct mlk_writer *w)
{
	s->result.heap_err = s->beside.heap_err;
	s->result.smaps_err = s->beside.smaps_err;
	return beside_write(&s->beside, w, &s->maps, (uint32_t)s->opts.target->pid,
			    s->opts.snapshot);
}

/* The walk is over: see where the threads are now.  Returns 1: there is one that runs and was not
 * seen yet; 0, or -errno. */
static int settle(struct reach_snapshot *s)
{
	uint64_t now_ns = clock_now_ns();
	size_t unknown;
	int err = registers_read(s->opts.target, s->opts.regs, &s->threads, NULL);

	if (err)
		return err;
	unknown = registers_settle(&s->threads);
	if (!s->settle_ns)
		s->settle_ns = now_ns + SETTLE_NS;
	if (unknown && s->opts.regs && now_ns < s->settle_ns)
		return 1;
	if (s->opts.regs)
		task_regs_sample(s->opts.regs, 0);
	return 0;
}

/* The walk has ended, with s->err: so does the pass, unless registers are still to come. */
static int finish_pass(struct reach_snapshot *s, struct mlk_writer *w)
{
	bool last = is_last(s);
	int err = s->err;

	if (s->prepares) {
		err = stop_and_walk(s, err);
		return err ? err : 1;
	}
	if (!err && !s->walk.frozen)
		err = settle(s);
	if (err > 0)
		return err;
	if (!err)
		err = write_pass(s, w);
	end_pass(s);
	if (err)
		return err;
	s->next_ns =
		clock_now_ns() + (s->pause_ns > s->opts.apart_ns ? s->pause_ns : s->opts.apart_ns);
	s->done++;
	return last ? write_beside(s, w) : 1;
}

int reach_snapshot_step(struct reach_snapshot *s, struct mlk_writer *w)
{
	bool over = false;
	uint64_t count;
	int err;

	(void)!read(s->event, &count, sizeof(count));
	if (s->settle_ns)
		return finish_pass(s, w);
	if (!s->runs) {
		if (clock_now_ns() < s->next_ns)
			return 1;
		err = begin_pass(s);
		return err ? err : 1;
	}
	err = take_words(s, w, &over);
	if (err || !over)
		return err ? err : 1;
	pthread_join(s->thread, NULL);
	s->runs = false;
	return finish_pass(s, w);
}

const struct reach_result *reach_snapshot_result(const struct reach_snapshot *s)
{
	return &s->result;
}

void reach_snapshot_end(struct reach_snapshot *s)
{
	if (!s)
		return;
	if (s->runs) {
		pthread_mutex_lock(&s->lock);
		s->cancelled = true;
		pthread_cond_signal(&s->taken);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	if (s->opts.regs)
		task_regs_sample(s->opts.regs, 0);
	end_pass(s);
	beside_end(&s->beside);
	moving_release(&s->moving);
	maps_release(&s->maps);
	if (s->event >= 0)
		close(s->event);
	pthread_cond_destroy(&s->taken);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
