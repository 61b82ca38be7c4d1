/* stdin_trace.h - a trace from the standard input */
#ifndef REPORT_STDIN_TRACE_H
#define REPORT_STDIN_TRACE_H

/*
 * *@fd is a file with what the standard input has: that itself if it is a file, else a copy of all
 * that comes until it ends, without a name, in the folder TMPDIR or /tmp.  The first SIGINT
 * meanwhile is left to the program that writes to the pipe.
 *
 * Returns 0, with *@fd to be closed, or -errno; -ENOTTY: it is a terminal; -ENODATA: not a byte
 * came.
 */
int stdin_trace_open(int *fd);

#endif
