/* preload_slot.h - a process's place in the memory shared with a preloaded library */
#ifndef RECORD_PRELOAD_SLOT_H
#define RECORD_PRELOAD_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"

/* Wake all that sleep on @word of the memory. */
void preload_slot_wake(uint32_t *word);

/* Answer the process that waits in @s. */
void preload_slot_answer(struct preload_process *s, enum preload_answer answer);

/* Has @pid, which has been answered, no more use for @s? */
bool preload_slot_is_left(const struct preload_process *s, pid_t pid);

/* The slot is anybody's from now on. */
void preload_slot_clear(struct preload_process *s);

/* Open a descriptor of process @pid, to be closed.  Returns it or -errno: -ESRCH where there is no
 * such process, with @spare -EMFILE before the last descriptors are taken. */
int preload_slot_open(pid_t pid, bool spare);

#endif
