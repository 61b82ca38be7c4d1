/* open_trace.c - see open_trace.h */
#include "report/trace/open_trace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mleak.h"
#include "report/trace/stdin_trace.h"

void explain_open(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
		log_error("cannot open '%s': %s; record one with 'mleak record -o %s -p PID'", path,
			  strerror(ENOENT), path);
		break;
	case -EISDIR:
		log_error("cannot open '%s': it is a directory; name the trace in it", path);
		break;
	case -EINVAL:
		log_error("cannot open '%s': it is not a regular file; give '-' in place of it to "
			  "read a trace from the standard input, or copy the trace to a file",
			  path);
		break;
	case MLK_E_MAGIC:
		log_error("'%s' is not a mleak trace (it does not begin with the trace's magic "
			  "bytes)",
			  path);
		break;
	case MLK_E_VERSION:
		log_error("'%s' has a later version of the format than this mleak (" MLEAK_VERSION
			  ") knows; read it with the mleak that wrote it",
			  path);
		break;
	case MLK_E_HEADER:
		log_error(
			"'%s' cannot be read: the header of the trace is damaged; copy it again or "
			"record anew",
			path);
		break;
	case MLK_E_EMPTY:
		log_error("'%s' cannot be read: the trace was cut before its first whole chunk; "
			  "copy it again or record anew",
			  path);
		break;
	default:
		log_error("cannot open '%s': %s", path, mlk_strerror(err));
	}
}

/* The same of the standard input. */
static void explain_stdin(int err)
{
	if (err == -ENOTTY)
		log_error("cannot read a trace from a terminal: name a file, or give one by a "
			  "pipe as in 'mleak record -o - | mleak report -'");
	else if (err == -ENODATA)
		log_error("no trace came from the standard input: what should have written it "
			  "ended before");
	else if (err == -EISDIR)
		log_error("cannot read the standard input: it is a directory; name the trace in "
			  "it");
	else
		log_error("cannot copy the trace from the standard input to a temporary file: %s",
			  strerror(-err));
}

int open_trace(struct mlk_reader **trace, const char *path, const char *shown)
{
	bool is_stdin = !strcmp(path, "-");
	int fd, err = is_stdin ? stdin_trace_open(&fd) : 0;

	if (err) {
		explain_stdin(err);
		return EXIT_USAGE;
	}
	err = is_stdin ? mlk_reader_open_fd(trace, fd) : mlk_reader_open_file(trace, path);
	if (err)
		explain_open(shown, err);
	return err ? EXIT_USAGE : EXIT_OK;
}

int open_trace_stream(struct mlk_reader **trace)
{
	int err = mlk_reader_open_stream(trace, STDIN_FILENO);

	if (err == MLK_E_EMPTY)
		explain_stdin(-ENODATA);
	else if (err)
		explain_open("-", err);
	return err ? EXIT_USAGE : EXIT_OK;
}
