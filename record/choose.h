/* choose.h - which backend records: what the kernel will refuse is known before a command starts */
#ifndef RECORD_CHOOSE_H
#define RECORD_CHOOSE_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/options.h"
#include "record/probe/refusal.h"

/* Is it known that eBPF will be refused to a recording with @o?  Writes the reason to @why, which
 * has REFUSAL_TEXT bytes, then; in any case what it depends on to *@facts. */
bool choose_refused(const struct record_opts *o, struct refusal_facts *facts, char *why);

/* Log one sentence if eBPF will be refused for process @pid.  Returns 0 or -EPERM. */
int choose_check(const struct record_opts *o, pid_t pid);

/*
 * With what is a command recorded if @o has BACKEND_AUTO?
 *
 * *@backend is BACKEND_PRELOAD, after a line that says so if this may be unexpected; or
 * BACKEND_BPF, if nothing else will do; or it stays BACKEND_AUTO: by eBPF, unless the kernel
 * refuses that later.  Returns 0, or -EPERM after one sentence: it takes eBPF, which is refused.
 */
int choose_backend(const struct record_opts *o, enum record_backend *backend);

/* Say that the command is recorded by the library, since eBPF was refused: @why, in words. */
void choose_tell(const char *why);

#endif
