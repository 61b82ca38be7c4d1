/* option_values.h - values that options of mleak record alone have */
#ifndef RECORD_OPTION_VALUES_H
#define RECORD_OPTION_VALUES_H

#include <stdint.h>

#include "cmdline/options.h"
#include "record/options.h"

/* How long a full ring holds a thread up that the recorder does not empty, if no time is given. */
#define OPTION_BLOCK_NS 60000000000ull

#define OPTION_MOST_TRACE (1ull << 50) /* bytes */

/* Each reads @text, the value of @option, into what it points to.  They return 0, or -EINVAL after
 * one sentence was logged.
 */

/* Append a process id to o->pids. */
int option_pid(const struct option_info *option, const char *text, struct record_opts *o);

/* How long to record. */
int option_duration(const struct option_info *option, const char *text, uint64_t *ns);

/* Sizes: of the stack that is taken, of the ring. */
int option_stack_size(const struct option_info *option, const char *text, uint32_t *bytes);
int option_ring_size(const struct option_info *option, const char *text, uint32_t *bytes);

/* zstd's level. */
int option_level(const struct option_info *option, const char *text, int *level);

/* The index of one of few words. */
int option_choice(const struct option_info *option, const char *text, int *choice);

/* What is done when the preloaded library's ring is full: how long a thread waits, 0 for not at
 * all.
 */
int option_on_full(const struct option_info *option, const char *text, uint64_t *block_ns);

/* A prefix of function names; *prefix is @text. */
int option_prefix(const struct option_info *option, const char *text, const char **prefix);

#endif
