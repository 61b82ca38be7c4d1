/* to_start.h - programs on their way from exec(2) to their start, from system call to system call
 *
 * All of this is for the thread that traces them.  Nothing is written to their memory: the end of
 * that thread sets them free.
 */
#ifndef RECORD_TO_START_H
#define RECORD_TO_START_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct to_start_entry;

/* All zero: nobody is.  Its owner frees v. */
struct to_start {
	struct to_start_entry *v;
	size_t nr, room;
};

/* From now on follow @pid, which is stopped at its exec; where there is no room for it, it is not
 * followed. */
void to_start_add(struct to_start *s, pid_t pid);

/* Follow @pid no more. */
void to_start_remove(struct to_start *s, pid_t pid);

/* How the stopped @pid is to go on, for ptrace(2). */
int to_start_request(const struct to_start *s, pid_t pid);

/* @pid has stopped at a system call.  Returns true if its libraries are mapped, or false after it
 * was followed too long: then it is followed no more. */
bool to_start_is_there(struct to_start *s, pid_t pid);

#endif
