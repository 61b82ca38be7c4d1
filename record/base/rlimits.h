/* rlimits.h - the limits of the recorder's own process, which are not its command's */
#ifndef RECORD_RLIMITS_H
#define RECORD_RLIMITS_H

#include <stdint.h>

/* Before anything is made or started: take all descriptors that are allowed, and have writes beyond
 * the limit on files' sizes fail rather than kill. */
void rlimits_raise(void);

/* In a child of fork(), before it becomes the command: all is as it was before rlimits_raise(), if
 * that was called. */
void rlimits_restore(void);

/* Are the open files that are allowed enough for eBPF?  Returns 0, or -EMFILE after one sentence
 * was logged. */
int rlimits_check_files(void);

/* Where memory is missing: the limit that a user may have set, as words for the end of a sentence;
 * "" if there is none. */
const char *rlimits_of_memory(void);

/* May a file of @bytes be made, as memory behind a descriptor is one, too?  Returns 0 or -EFBIG. */
int rlimits_check_size(uint64_t bytes);

#endif
