/* join.h - wait for a thread of ours that traces a process
 *
 * A process that becomes another program (exec) waits in the kernel until its other threads are
 * gone, and one that is traced goes when its tracer has waited for it.  A tracer that is about to
 * trace one more of these threads waits for that exec: both for ever.  So another thread of ours
 * waits for those that have ended.
 */
#ifndef RECORD_JOIN_H
#define RECORD_JOIN_H

#include <pthread.h>
#include <sys/types.h>

/* As pthread_join(3) of @thread, which traces threads of process @pid.  If @thread waits for one of
 * them without an end, *@seizing tells when it does not, but may wait for that exec; else it is
 * NULL. */
void join_tracer(pthread_t thread, pid_t pid, const _Atomic int *seizing);

#endif
