/* option_values.h - values of options that are more than a number */
#ifndef RECORD_OPTION_VALUES_H
#define RECORD_OPTION_VALUES_H

#include <stdint.h>

#include "cmdline/options.h"
#include "record/options.h"

#define OPTION_MOST_TRACE (1ull << 50) /* bytes */

/* All return 0, or -EINVAL after one sentence was logged. */

/* A time, to which another can be added. */
int option_duration(const struct option_info *option, const char *text, uint64_t *ns);

/* When another trace begins.  A size has a unit, K or larger, and a time one of ms, s, m, h and d:
 * 10M is a size. */
int option_switch(const struct option_info *option, const char *text, struct switch_opts *o);

/* When the memory is read, and how: nothing (NULL), "stop", a time, or both with a comma between.
 */
int option_reach(const struct option_info *option, const char *text, struct record_opts *o);

/* --redact. */
int option_redact(const struct option_info *option, const char *text, struct record_opts *o);

#endif
