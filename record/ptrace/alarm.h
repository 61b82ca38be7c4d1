/* alarm.h - have a wait of the calling thread end at a time
 *
 * waitpid(2) knows no time at which it gives up, and to ask it again and again takes processors
 * from those that are waited for.
 */
#ifndef RECORD_ALARM_H
#define RECORD_ALARM_H

#include <stdint.h>
#include <time.h>

/* From @at_ns of CLOCK_MONOTONIC on, each @again_ns, a system call of the calling thread that waits
 * returns EINTR, by the signal SIGRTMIN.  It comes again, for it may come just before a call
 * begins.  Returns 0, and @alarm, which the same thread ends with alarm_end(); or -errno. */
int alarm_begin(timer_t *alarm, uint64_t at_ns, uint32_t again_ns);

/* None comes any more. */
void alarm_end(timer_t alarm);

#endif
