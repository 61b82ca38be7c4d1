/* awake.h - processors that do not go to sleep for a moment
 *
 * To wake an idle processor takes a machine 2 us, and a virtual one 50 or more.  While threads are
 * stopped, one after the other is woken to do so.
 */
#ifndef RECORD_AWAKE_H
#define RECORD_AWAKE_H

struct awake; /* opaque; NULL: nothing is done about it */

/* Keep up to @nr processors awake, by threads that run where nothing else wants to (SCHED_IDLE).
 * Or NULL. */
struct awake *awake_begin(unsigned int nr);

/* Let them sleep.  The threads end on their own, some time later. */
void awake_end(struct awake *a);

#endif
