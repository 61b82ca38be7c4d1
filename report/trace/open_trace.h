/* open_trace.h - open a trace, and say in one sentence why it cannot be */
#ifndef REPORT_OPEN_TRACE_H
#define REPORT_OPEN_TRACE_H

#include "format/reader.h"

/* Open the trace at @path, or that comes from the standard input, "-".  @shown is the path, safe to
 * print.  *@trace is NULL on failure. Returns EXIT_OK or EXIT_USAGE. */
int open_trace(struct mlk_reader **trace, const char *path, const char *shown);

/* Open the trace that is being written to the standard input, a pipe or a socket, as
 * mlk_reader_open_stream() does.  *@trace is as above.  Returns EXIT_OK or EXIT_USAGE. */
int open_trace_stream(struct mlk_reader **trace);

/* Say why the trace @path, safe to print, cannot be opened, and what to do. */
void explain_open(const char *path, int err);

#endif
