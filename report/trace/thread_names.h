/* thread_names.h - the names of a trace's threads */
#ifndef REPORT_THREAD_NAMES_H
#define REPORT_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct thread_names; /* opaque */

/* No names yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int thread_names_new(struct thread_names **out);

/* Thread @tid of process @tgid is called @name, which is copied, from now on.  Returns 0 or
 * -ENOMEM. */
int thread_names_note(struct thread_names *threads, uint32_t tgid, uint32_t tid, const char *name);

/* The last name of the thread as it was recorded (any bytes), "" when not known; valid until
 * thread_names_note() or thread_names_free(). */
const char *thread_names_get(const struct thread_names *threads, uint32_t tgid, uint32_t tid);

/* Call @visit with @arg for each thread and its last name, in the order of their first notes. */
void thread_names_each(const struct thread_names *threads,
		       void (*visit)(void *arg, uint32_t tid, const char *name), void *arg);

/* Forget the threads of processes of which @is_gone() says so, with @arg. */
void thread_names_forget(struct thread_names *threads, bool (*is_gone)(void *arg, uint32_t tgid),
			 void *arg);

/* Release @threads; NULL is allowed. */
void thread_names_free(struct thread_names *threads);

#endif
