/* event_line.h - an event in words, on one line */
#ifndef REPORT_EVENT_LINE_H
#define REPORT_EVENT_LINE_H

#include <stdio.h>

#include "format/trace.h"
#include "report/trace/thread_names.h"

/* Print @event, of a recording that began at @start_ns, with the name that its thread has in
 * @names; without the end of the line. */
void print_event(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		 const struct thread_names *names);

/* The same with the end of the line. */
void print_event_line(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		      const struct thread_names *names);

#endif
