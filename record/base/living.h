/* living.h - threads that have ended, and those that have not */
#ifndef RECORD_LIVING_H
#define RECORD_LIVING_H

#include <stdbool.h>
#include <sys/types.h>

/* Is @tid a thread that has not ended?  A main thread that has, stays as a zombie. */
bool living_is(pid_t tid);

/* Is @tid a thread that has not begun to end?  From then on its memory may be another's. */
bool living_goes_on(pid_t tid);

/* A thread of process @pid that lives, but not @but; 0: there is none. */
pid_t living_other(pid_t pid, pid_t but);

/* The main thread of process @pid if that lives, else another one that does; @pid if none does.
 * /proc tells nothing of the memory and files of a main thread that has ended. */
static inline pid_t living_thread(pid_t pid)
{
	const pid_t other = living_is(pid) ? 0 : living_other(pid, 0);

	return other ? other : pid;
}

#endif
