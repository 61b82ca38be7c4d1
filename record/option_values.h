/* option_values.h - what stands behind the options of mleak record, as numbers */
#ifndef RECORD_OPTION_VALUES_H
#define RECORD_OPTION_VALUES_H

#include <stdint.h>

#include "record/options.h"

/* How long a full ring holds a thread up that the recorder does not empty, if not told. */
#define OPTION_BLOCK_NS 60000000000ull

/* Each reads @text into what it points to.  They return 0, or -EINVAL after one sentence was
 * logged.
 */

/* Append a process id to o->pids. */
int option_pid(const char *text, struct record_opts *o);

/* A time: seconds, or with a unit. */
int option_duration(const char *text, uint64_t *ns);

/* Sizes: of the stack that is taken, of the ring, of the trace. */
int option_stack_size(const char *text, uint32_t *bytes);
int option_ring_size(const char *text, uint32_t *bytes);
int option_max_size(const char *text, uint64_t *bytes);

/* zstd's level. */
int option_level(const char *text, int *level);

/* One of few words. */
int option_link(const char *text, enum probe_link *link);
int option_returns(const char *text, enum returns_by *returns);
int option_embed(const char *text, enum elf_image_embed *embed);
int option_backend(const char *text, enum record_backend *backend);

/* What is done when the preloaded library's ring is full: how long a thread waits, 0 for not at
 * all.
 */
int option_on_full(const char *text, uint64_t *block_ns);

/* A prefix of function names; *prefix is @text. */
int option_prefix(const char *text, const char **prefix);

#endif
