/* memory_room.h - how much memory the control group of a process leaves it */
#ifndef RECORD_MEMORY_ROOM_H
#define RECORD_MEMORY_ROOM_H

#include <stdint.h>
#include <sys/types.h>

/* How many bytes more process @pid may have by its control group, and those that this is within.
 * What they keep of files and names is given back when there is need.  UINT64_MAX: no limit is
 * known. */
uint64_t memory_room(pid_t pid);

/* The number behind @name in @text; UINT64_MAX: there is none, or no limit. */
uint64_t memory_value(const char *text, const char *name);

/* @bytes in MiB, rounded up. */
unsigned long long memory_mib(uint64_t bytes);

#endif
