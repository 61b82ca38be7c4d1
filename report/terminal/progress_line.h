/* progress_line.h - how far a trace is read, on a terminal: one line, which vanishes in the end */
#ifndef REPORT_PROGRESS_LINE_H
#define REPORT_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* How far it is, and when that is drawn next. */
struct progress_line {
	bool on;
	uint64_t whole;	 /* bytes */
	int64_t next_ns; /* CLOCK_MONOTONIC: not drawn before, so that what is quick shows none */
};

/* Begin: the trace has @whole bytes.  Only if @wanted, and stderr is a terminal, is anything shown.
 */
void progress_line_begin(struct progress_line *meter, uint64_t whole, bool wanted);

/* @done bytes of it were read.  @arg is the meter. */
void progress_line_move(void *arg, uint64_t done);

/* Take the line away. */
void progress_line_end(struct progress_line *meter);

#endif
