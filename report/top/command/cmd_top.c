/* cmd_top.c - `mleak top`: what is outstanding, while it is recorded */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "mleak.h"
#include "report/base/memory.h"
#include "report/terminal/pager.h"
#include "report/top/screen/screen.h"
#include "report/top/top_source.h"
#include "report/top/top_view.h"
#include "report/trace/trace_gaps.h"

#define LOOK_NS	   50000000u	/* until it is looked again what was appended */
#define READ_NS	   10000000000u /* until a first table comes without what was not read */
#define MOST_EMPTY 1000000	/* intervals without an event that have tables */

/* Tables, one after the other. */
struct top {
	const struct top_opts *opts;
	struct top_source source;
	struct top_view view;
	uint64_t interval_ns;
	uint64_t next_ns; /* when the next table is due, CLOCK_MONOTONIC */
	uint64_t last_ns; /* of the last event that the last table has */
	bool by_events;	  /* by the trace's time, as it is finished */
	bool enough;	  /* as many as were asked for */
	bool stopped;	  /* and the recording was told so */
	bool caught_up;	  /* see note_beginning() */
};

static uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int print_table(struct top *top, uint64_t now_ns)
{
	int err = top_view_update(&top->view, now_ns, top->opts->rows);

	top->last_ns = follow_last_ns(top->view.follow);
	if (!err)
		err = top_print(stdout, &top->view);
	top->enough = ++top->view.printed == top->opts->count;
	return err;
}

/* When the next table of a finished trace is due, at which an event of @event_ns is to come.  A
 * time that no recording has may be far off, or the last that there is. */
static uint64_t next_after(const struct top *top, uint64_t event_ns)
{
	uint64_t interval_ns = top->interval_ns;

	if (!interval_ns || top->next_ns > UINT64_MAX - interval_ns)
		return UINT64_MAX;
	if ((event_ns - top->next_ns) / interval_ns > MOST_EMPTY)
		return event_ns;
	return top->next_ns + interval_ns;
}

/* Each event, before the replay has it. */
static int on_event(void *arg, const struct mlk_event *event, uint32_t id)
{
	struct top *top = arg;
	int err = 0;

	if (top->opts->calls)
		return top_print_call(stdout, &top->view, event, id);
	while (!err && top->by_events && !top->enough && top->next_ns != UINT64_MAX &&
	       event->time_ns >= top->next_ns) {
		err = print_table(top, top->next_ns);
		top->next_ns = next_after(top, event->time_ns);
	}
	if (!err && top->enough)
		return -ECANCELED;
	return err;
}

/* The end of the recording, as far as it is known. */
static uint64_t end_of(const struct top *top)
{
	const struct mlk_condition *condition = &top->view.leaks->condition;
	uint64_t last_ns = follow_last_ns(top->view.follow);

	return condition->ended && condition->end_ns > last_ns ? condition->end_ns : last_ns;
}

/* Of so many tables as are asked for the first waits until memory was read, if the recorder here is
 * to read it: it may be the only one.  But not forever. */
static bool is_unread(const struct top *top, uint64_t now_ns)
{
	const struct top_view *view = &top->view;

	return top->opts->resident && top->opts->count && top->source.record.pipe >= 0 &&
	       !view->printed && !view->where.text && !view->where.failed &&
	       now_ns < top->next_ns + READ_NS;
}

/* Is the next table due? */
static bool is_due(const struct top *top, uint64_t now_ns)
{
	return !top->by_events && !top->enough && top->caught_up && now_ns >= top->next_ns &&
	       !is_unread(top, now_ns);
}

/* From when on there are tables: when what was there at first is taken in, or the recording has
 * begun. */
static void note_beginning(struct top *top, int state, uint64_t now_ns)
{
	bool ours = top->source.record.pipe >= 0;

	if (top->by_events || top->caught_up ||
	    (ours ? !top_record_begun(&top->source.record) : state != FOLLOW_IDLE))
		return;
	top->caught_up = true;
	top->next_ns = now_ns + top->interval_ns;
}

/* There were tables enough, or nobody reads them: what is recorded is followed to its end. */
static void stop_early(struct top *top)
{
	if ((!top->enough && !ferror(stdout)) || top->stopped)
		return;
	top->enough = top->stopped = true;
	top_source_stop(&top->source);
}

/* A table for each interval, until the trace ends or there were enough.  Returns 0 or an error. */
static int show_tables(struct top *top)
{
	int state, err = 0;

	do {
		uint64_t now_ns = clock_now_ns();

		state = top_view_step(&top->view, now_ns);
		if (state < 0)
			return state;
		note_beginning(top, state, now_ns);
		if (is_due(top, now_ns)) {
			err = print_table(top, now_ns);
			/* at equal distances, unless that is not to be had */
			top->next_ns += top->interval_ns;
			if (top->next_ns <= now_ns)
				top->next_ns = now_ns + top->interval_ns;
		}
		stop_early(top);
		top_source_wait(&top->source, state == FOLLOW_IDLE ? LOOK_NS : 0);
	} while (!err && state != FOLLOW_ENDED && !top->source.stop);
	/* unless the last one said the same already */
	if (err || top->enough ||
	    (top->view.printed && top->last_ns == follow_last_ns(top->view.follow)))
		return err;
	/* a trace that comes by a pipe may be from another day */
	return print_table(top, top->by_events || top->view.leaks->condition.ended
					? end_of(top)
					: clock_now_ns());
}

/* Each call as it happens, until the trace ends.  Returns 0 or an error. */
static int show_calls(struct top *top)
{
	int state;

	do {
		state = top_view_step(&top->view, clock_now_ns());
		fflush(stdout);
		if (state < 0)
			return state;
		stop_early(top);
		top_source_wait(&top->source, state == FOLLOW_IDLE ? LOOK_NS : 0);
	} while (state != FOLLOW_ENDED && !top->source.stop);
	return 0;
}

/* Until a key ends it: then the recording ends, and a command that was started for it, too. */
static int show_screen(struct top *top)
{
	bool quit = false;
	int state = FOLLOW_IDLE, err;

	top->source.keys = true;
	err = screen_run(&top->view, &top->source, &quit);
	top->source.keys = false;
	if (err == -ENOTTY)
		return show_tables(top);
	if (!err && quit)
		top_record_signal(&top->source.record, SIGTERM);
	/* what it still writes is read, so that it can end */
	while (!err && top->source.record.pid && state != FOLLOW_ENDED) {
		state = top_view_step(&top->view, clock_now_ns());
		err = state < 0 ? state : 0;
		top_source_wait(&top->source, LOOK_NS);
	}
	return err;
}

static int explain(const struct top *top, int err)
{
	if (err == -ENOMEM) {
		memory_explain(top->source.shown);
		return EXIT_FAILED;
	}
	log_error("cannot read '%s' at byte %" PRIu64 ": %s", top->source.shown,
		  mlk_reader_offset(top->source.trace), mlk_strerror(err));
	return EXIT_USAGE;
}

/* Of a trace that came to its end, unless nobody reads any more what is printed.  What is recorded
 * for this is the recorder's to tell. */
static void warn_of_end(const struct top *top)
{
	if (top->opts->path && top->view.ended && !ferror(stdout))
		warn_of_gaps(top->source.shown, top->source.trace, &top->view.leaks->condition,
			     "events");
}

static int follow_trace(struct top *top)
{
	uint64_t start_ns = mlk_reader_meta(top->source.trace)->start_ns;
	int err;

	if (!top_opts_fit(top->opts, mlk_reader_meta(top->source.trace)->of_kernel))
		return EXIT_USAGE;
	if (top->opts->resident && !top->source.live) {
		log_error("'%s' is finished: see mleak report --resident %s", top->source.shown,
			  top->source.shown);
		return EXIT_USAGE;
	}
	top->by_events = !top->source.live && !top->opts->screen;
	top->interval_ns = top->opts->interval_ns;
	if (!top->interval_ns && !top->by_events)
		top->interval_ns = TOP_USUAL_NS;
	top->next_ns = top->interval_ns ? start_ns + top->interval_ns : UINT64_MAX;
	err = top_view_start(&top->view, top->opts, top->source.trace, on_event, top);
	top->view.live = top->source.live;
	if (!err)
		err = top->opts->screen	 ? show_screen(top)
		      : top->opts->calls ? show_calls(top)
					 : show_tables(top);
	if (err && err != -ECANCELED)
		return explain(top, err);
	warn_of_end(top);
	return EXIT_OK;
}

/* Once from the beginning of a trace to its end.  Returns the exit status, which is *@ended if that
 * is the end of a process by a signal, or EXIT_REFUSED. */
static int run_once(const struct top_opts *opts, int *ended)
{
	struct top top = {.opts = opts};
	int status = top_source_open(&top.source, opts);

	if (status == EXIT_OK && top.source.trace) {
		memory_limit(opts->max_memory);
		status = follow_trace(&top);
		status = top_source_finish(&top.source, status);
		*ended = top.source.record.status;
	}
	top_source_tell(&top.source);
	top_view_release(&top.view);
	top_source_release(&top.source);
	return status;
}

/* A kernel may refuse eBPF when the recording has begun: then the library records the command. */
static int run(struct top_opts *opts)
{
	int ended = 0, status;

	opts->screen = !opts->plain && !opts->count && !opts->calls && !opts->blocks &&
		       opts->form == TOP_TABLE && screen_possible();
	status = run_once(opts, &ended);
	if (status == EXIT_REFUSED && opts->command && !top_opts_preload(opts))
		status = run_once(opts, &ended);
	if (pager_finish() != EXIT_OK)
		return EXIT_FAILED;
	return WIFSIGNALED(ended) ? end_as(ended) : status;
}

int cmd_top(int argc, char **argv)
{
	struct top_opts opts;
	int err, status;

	signal(SIGPIPE, SIG_IGN);
	unsetenv("DEBUGINFOD_URLS"); /* no library may go to the network by itself */
	err = top_opts_parse(&opts, argc, argv);
	if (err) {
		if (err == -ENOMEM)
			log_error("cannot read the options: %s", strerror(ENOMEM));
		status = err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	} else if (opts.help) {
		top_opts_help();
		status = pager_finish();
	} else {
		status = run(&opts);
	}
	top_opts_release(&opts);
	return status;
}
