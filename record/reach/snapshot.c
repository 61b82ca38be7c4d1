/* snapshot.c - see snapshot.h */
#include "record/reach/snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/reach/registers.h"
#include "record/reach/walk.h"

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
	struct reach_walk walk; /* the thread's while it runs */
	struct mlk_reach_thread *threads;
	size_t nr_threads;
	uint64_t begin_ns, next_ns;
	unsigned int done; /* passes */
	pthread_t thread;
	bool runs;
	_Atomic bool cancelled;
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

	pthread_mutex_lock(&s->lock);
	while (s->parcel.nr && !s->cancelled)
		pthread_cond_wait(&s->taken, &s->lock);
	if (!s->cancelled) {
		memcpy(s->parcel.words, words, nr * sizeof(*words));
		s->parcel.nr = nr;
	}
	pthread_mutex_unlock(&s->lock);
	wake(s);
	return s->cancelled ? -ECANCELED : 0;
}

static void *run(void *arg)
{
	struct reach_snapshot *s = arg;
	int err = reach_walk_run(&s->walk);

	pthread_mutex_lock(&s->lock);
	s->over = true;
	s->err = err;
	s->end_ns = clock_now_ns();
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
	free(s->threads);
	s->threads = NULL;
	s->walk = (struct reach_walk){.mem = -1, .pagemap = -1};
}

static int start_thread(struct reach_snapshot *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->runs = !err;
	return -err;
}

static int begin_pass(struct reach_snapshot *s)
{
	const struct target *t = s->opts.target;
	int err;

	s->begin_ns = clock_now_ns();
	err = target_read_maps(t, &s->maps);
	if (!err)
		err = reach_ranges(s->maps.v, s->maps.nr, &s->walk.ranges, &s->walk.nr);
	/* on some kernels the list of one that has no memory any more is empty */
	if (!err && !s->walk.nr)
		err = -ESRCH;
	if (!err)
		err = registers_read(t, &s->threads, &s->nr_threads);
	if (!err) {
		s->walk.mem = target_open_file(t, HELPER_MEM);
		s->walk.pagemap = target_open_file(t, HELPER_PAGEMAP);
		err = s->walk.mem < 0 ? s->walk.mem : s->walk.pagemap < 0 ? s->walk.pagemap : 0;
	}
	s->walk.sink = hand_over;
	s->walk.stop = &s->cancelled;
	s->walk.arg = s;
	s->over = false;
	return err ? err : start_thread(s);
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
	s->walk.mem = s->walk.pagemap = -1;
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
		.flags = s->done + 1 == s->opts.passes ? MLK_PASS_LAST : 0,
		.begin_ns = s->begin_ns,
		.end_ns = s->end_ns,
		.words = s->walk.words,
		.ranges = s->walk.ranges,
		.nr_ranges = s->walk.nr,
		.threads = s->threads,
		.nr_threads = s->nr_threads,
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

int reach_snapshot_step(struct reach_snapshot *s, struct mlk_writer *w)
{
	bool over = false;
	uint64_t count;
	int err;

	(void)!read(s->event, &count, sizeof(count));
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
	err = s->err ? s->err : write_pass(s, w);
	end_pass(s);
	if (err)
		return err;
	s->next_ns = clock_now_ns() + s->opts.apart_ns;
	return ++s->done < s->opts.passes;
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
	end_pass(s);
	maps_release(&s->maps);
	if (s->event >= 0)
		close(s->event);
	pthread_cond_destroy(&s->taken);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
