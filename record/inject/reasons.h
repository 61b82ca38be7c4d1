/* reasons.h - why a process cannot be changed, in words behind "it", where several files say so */
#ifndef RECORD_INJECT_REASONS_H
#define RECORD_INJECT_REASONS_H

#define REASON_RUNS_ON                                                                     \
	"has a thread that does not stop: it waits for a device, a child of vfork() or a " \
	"processor"

#endif
