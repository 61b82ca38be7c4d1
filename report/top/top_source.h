/* top_source.h - where `mleak top` has its trace from, and the signals meanwhile */
#ifndef REPORT_TOP_SOURCE_H
#define REPORT_TOP_SOURCE_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

#include "format/place.h"
#include "format/reader.h"
#include "report/top/top_options.h"
#include "report/top/top_record.h"

/* A trace that is there or being written, or comes from a recorder of our own. */
struct top_source {
	const struct top_opts *opts;
	char *shown; /* the trace's name, safe to print */
	struct mlk_reader *trace;
	struct top_record record;
	struct mlk_place place; /* where the trace is kept */
	char path[PATH_MAX];	/* of that */
	bool kept;		/* it is copied there */
	bool taken;		/* and has its name, as the recording has begun */
	int place_err;		/* why it has none */
	int stream;    /* by which the trace comes: of the recorder, or stdin; -1: it is a file */
	bool live;     /* it is being written */
	int signals;   /* signalfd(2) */
	sigset_t mask; /* before */
	bool keys;     /* what is typed ends a wait, too */
	bool hung_up;  /* nothing can be typed any more */
	bool asked;    /* a signal asked for the end */
	bool stop;     /* a signal asked for the end, and there is no recorder to ask */
};

/* Open it.  Returns EXIT_OK or the exit status to end with, after it was said why; @source is to be
 * released in any case. */
int top_source_open(struct top_source *source, const struct top_opts *opts);

/* Wait until something was appended or a signal came, at most @ns nanoseconds. */
void top_source_wait(struct top_source *source, uint64_t ns);

/* No more is wanted: end the recording, if it is ours. */
void top_source_stop(struct top_source *source);

/* The trace has ended, or is not wanted any more.  Wait for the recorder's end, and say what was
 * kept.  Returns the exit status, or EXIT_REFUSED as record_into(), if @status is EXIT_OK. */
int top_source_finish(struct top_source *source, int status);

/* Is the trace kept in a file? */
bool top_source_keeps(const struct top_source *source);

/* Write to the new file @fd, which stays open.  Returns 0 or -errno. */
typedef int top_source_fill_fn(void *arg, int fd);

/* Write a file "mleak-top-PID@suffix": what @fill does with @arg, or, if that is NULL, the trace so
 * far, which must be kept.  Its name goes into the @size bytes at @path.  Returns 0 or an error for
 * mlk_strerror(). */
int top_source_write(const struct top_source *source, const char *suffix, top_source_fill_fn *fill,
		     void *arg, char *path, size_t size);

/* The messages of the recorder, which were held back while there was a screen, on stderr. */
void top_source_tell(struct top_source *source);

/* Release what @source holds. */
void top_source_release(struct top_source *source);

#endif
