/* processes.h - the processes of a trace: their names, and what each amounts to */
#ifndef REPORT_PROCESSES_H
#define REPORT_PROCESSES_H

#include "format/trace.h"
#include "report/live/live.h"
#include "report/trace/thread_names.h"

/* Names of processes are a table of their own, in which each has one thread. */

/* Note the name of @thread, if it is a process's main thread.  Returns 0 or -ENOMEM. */
int processes_note(struct thread_names *names, const struct mlk_thread *thread);

/* Is the name of process @tgid known? */
bool processes_are_named(const struct thread_names *names, uint32_t tgid);

/* The name of process @tgid, any bytes, "process" when none is known; valid until the next
 * processes_note(). */
const char *processes_name(const struct thread_names *names, uint32_t tgid);

/* What a process's root in a tree says, as "sh (1234)".  Returns a string that the caller frees, or
 * NULL when there is no memory. */
char *processes_label(const struct thread_names *names, uint32_t tgid);

/* The totals of all processes of @live with the number @tgid.  False: there are none. */
bool processes_totals(const struct live *live, uint32_t tgid, struct live_totals *totals);

/* The processes of @live, most outstanding bytes first, by their labels: "sh (1234), ls (1235) and
 * 3 more", "" if there are none; any bytes.  Returns a string that the caller frees, or NULL when
 * there is no memory. */
char *processes_list(const struct thread_names *names, const struct live *live);

#endif
