/* own_thread.h - work that traces a process, in a thread that ends with it
 *
 * A thread of the target that did not stop in time may stop later.  Only the end of the thread that
 * traces it lets it go then.
 */
#ifndef RECORD_INJECT_OWN_THREAD_H
#define RECORD_INJECT_OWN_THREAD_H

#include <sys/types.h>

/* Call @what with @arg, which traces threads of process @pid, in a thread of its own, and wait
 * until that traces nobody; in this one where no thread can be started.  That goes before all
 * others where it is allowed to, so @what must not spin.  Returns what @what does. */
int inject_in_thread(int (*what)(void *arg), void *arg, pid_t pid);

#endif
