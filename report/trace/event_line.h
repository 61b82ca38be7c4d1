/* event_line.h - an event in words, on one line */
#ifndef REPORT_EVENT_LINE_H
#define REPORT_EVENT_LINE_H

#include <stdio.h>

#include "format/trace.h"
#include "report/trace/thread_names.h"
#include "report/trace/trace_marks.h"

/* Print @event, of a recording that began at @start_ns, with the name that its thread has in
 * @names; without the end of the line. */
void print_event(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		 const struct thread_names *names);

/* The same with the end of the line. */
void print_event_line(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		      const struct thread_names *names);

/* Print @mark in a line of the same form: of thread 0/0, and its text is the rest of the line. */
void print_mark_line(FILE *out, const struct trace_mark *mark, uint64_t start_ns);

#endif
