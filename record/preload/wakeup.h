/* wakeup.h - the thread that sleeps on the memory shared with a preloaded library
 *
 * The target wakes it by a futex, which no epoll waits for.  And by it the library sees whether
 * the recorder lives: the kernel marks the word there when this thread has ended, in whatever way.
 */
#ifndef RECORD_WAKEUP_H
#define RECORD_WAKEUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "record/libpreload/ring.h"

/* All zero: it does not sleep. */
struct wakeup {
	struct preload_header *memory;
	pthread_t thread;
	int fd; /* an eventfd */
	bool sleeps, ended;
};

/* Have a thread turn wakes of the target, by @memory, into those of the eventfd @fd; both are
 * borrowed until wakeup_end(), and *@s stays where it is.  False: no thread could be
 * started. */
bool wakeup_start(struct wakeup *s, struct preload_header *memory, int fd);

/* End the thread, if there is one, and wait for that. */
void wakeup_end(struct wakeup *s);

/* Sleep until a process wakes @word, which is still @seen, but not longer than @most. */
void wakeup_wait(uint32_t *word, uint32_t seen, const struct timespec *most);

#endif
