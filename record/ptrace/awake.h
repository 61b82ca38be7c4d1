/* awake.h - processors that do not go to sleep for a moment
 *
 * To wake an idle processor takes 2 us, and a virtual one 50 or more.  To stop all threads of a
 * process, one after the other is woken; so is one for each system call that it makes for us.
 */
#ifndef RECORD_AWAKE_H
#define RECORD_AWAKE_H

/* Have idle processors stay awake, until the descriptor that is returned is closed.  -1: that is
 * not allowed here. */
int awake_begin(void);

/* Let them sleep again; -1 is allowed. */
void awake_end(int fd);

#endif
