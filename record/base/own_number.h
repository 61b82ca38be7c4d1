/* own_number.h - threads of other pid namespaces, which know themselves by other numbers */
#ifndef RECORD_OWN_NUMBER_H
#define RECORD_OWN_NUMBER_H

#include <stdbool.h>
#include <sys/types.h>

/* The number that thread @tid of process @pid has for itself: that of the innermost pid namespace
 * it is in.  Where that cannot be read, and before Linux 4.1, @tid. */
pid_t own_number_of(pid_t pid, pid_t tid);

/* The thread of process @pid that calls itself @own.  0: there is none any more. */
pid_t own_number_find(pid_t pid, pid_t own);

/* Do the threads of process @pid have numbers of their own? */
static inline bool own_number_differs(pid_t pid)
{
	return own_number_of(pid, pid) != pid;
}

#endif
