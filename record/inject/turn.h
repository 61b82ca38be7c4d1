/* turn.h - one at a time: who puts code into a process, or takes it out
 *
 * Else what one has found might be another's by the time it is unmapped: the kernel gives the same
 * addresses again.
 */
#ifndef RECORD_INJECT_TURN_H
#define RECORD_INJECT_TURN_H

#include <sys/types.h>

/* Wait until no other mleak changes process @pid.  Returns a descriptor, whose closing ends the
 * turn, as does the end of the caller; or -errno, -EBUSY: another one takes too long. */
int inject_turn_take(pid_t pid);

#endif
