/* cmd_script.c - `mleak script`: the events of a trace, one a line */
#include <stdio.h>
#include <time.h>

#include "mleak.h"
#include "report/events_command.h"
#include "report/trace/event_line.h"
#include "report/trace/thread_names.h"
#include "report/trace/trace_marks.h"

#define WAIT_NS 50000000 /* until it is looked again what was appended */

/* The names so far, and when the recording began. */
struct script {
	struct thread_names *names;
	struct trace_marks marks;
	size_t marked; /* of them, those before are printed */
	uint64_t start_ns;
};

/* Print the marks up to @time_ns. */
static void print_marks(struct script *script, uint64_t time_ns)
{
	const struct trace_marks *marks = &script->marks;

	for (; script->marked < marks->nr && marks->all[script->marked].time_ns <= time_ns;
	     script->marked++) {
		struct trace_mark *mark = &marks->all[script->marked];

		if (!mark->printed)
			print_mark_line(stdout, mark, script->start_ns);
		mark->printed = true;
	}
}

/* A mark of before may come behind others that are printed. */
static int take_mark(struct script *script, const struct mlk_mark *mark)
{
	int err = trace_marks_note(&script->marks, mark);
	size_t nr = script->marks.nr, late = TRACE_MARKS_LATE + 1;

	if (script->marked > nr - (nr < late ? nr : late))
		script->marked = nr - (nr < late ? nr : late);
	return err;
}

static int take_record(struct script *script, const struct mlk_record *record)
{
	const struct mlk_thread *thread = &record->thread;

	if (record->type == MLK_RECORD_THREAD)
		return thread_names_note(script->names, thread->tgid, thread->tid, thread->name);
	if (record->type == MLK_RECORD_MARK)
		return take_mark(script, &record->mark);
	print_marks(script, record->event.time_ns);
	print_event_line(stdout, &record->event, script->start_ns, script->names);
	return 0;
}

/* All records of @types that are there.  Returns 0 or an error. */
static int take_records(struct script *script, struct mlk_reader *trace)
{
	struct mlk_record record;
	int more, err = 0;

	while (!err && (more = mlk_reader_next(trace, &record)) != 0)
		err = more < 0 ? more : take_record(script, &record);
	return err;
}

/* Names are known only from where they stand on: who waits for them prints nothing. */
static int follow_trace(struct script *script, struct mlk_reader *trace)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	bool last = false;
	int err = 0;

	mlk_reader_rewind(trace, MLK_RECORD_THREAD | MLK_RECORD_MARK | MLK_RECORD_HEAD);
	while (!err && !last && !ferror(stdout)) {
		last = mlk_reader_condition(trace)->ended || !mlk_reader_is_growing(trace);
		err = mlk_reader_follow(trace, last);
		if (!err)
			err = take_records(script, trace);
		if (!err)
			print_marks(script, UINT64_MAX);
		fflush(stdout);
		if (!err && !last)
			nanosleep(&wait, NULL);
	}
	return err;
}

static int print_events(struct mlk_reader *trace, bool follow)
{
	struct script script = {.start_ns = mlk_reader_meta(trace)->start_ns};
	int err = thread_names_new(&script.names);

	if (!err && follow) {
		err = follow_trace(&script, trace);
	} else if (!err) {
		mlk_reader_rewind(trace, MLK_RECORD_THREAD | MLK_RECORD_MARK);
		err = take_records(&script, trace);
		mlk_reader_rewind(trace, MLK_RECORD_HEAD);
		if (!err)
			err = take_records(&script, trace);
		if (!err)
			print_marks(&script, UINT64_MAX);
	}
	trace_marks_release(&script.marks);
	thread_names_free(script.names);
	return err;
}

int cmd_script(int argc, char **argv)
{
	static const char help[] =
		"usage: mleak script [--follow] FILE\n\nPrints the events of a trace, one per "
		"line, in words:\n\n  seconds from the start, PID/TID, name of the thread, what, "
		"and then\n  SIZE ADDRESS  of a function's block (malloc, realloc, mmap, new, "
		"...), and of unmap\n  ADDRESS       of free, release (realloc frees its block), "
		"restore (it did not)\n  PARENT        of fork; nothing of exec and "
		"exit\n  TEXT          of mark, a moment that was marked while recording\n\nSpaces "
		"in the name are printed as '_', no name as '-'.  See "
		"mleak-script(1).\n\n";

	return events_command(
		argc, argv,
		&(struct events_command){
			.rows = script_option, .help = help, .warns = true, .print = print_events});
}
