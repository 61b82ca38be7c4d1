/* recording.h - a recording, from the opening of its trace to what is said of it at the end */
#ifndef RECORD_RECORDING_H
#define RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/options.h"
#include "record/session/session.h"

/* In place of an exit status: the kernel refused eBPF, and the command did not run.  Its value is
 * none of LAUNCH_ENDED and exit statuses. */
#define REFUSED (-2)

/* A command that we have started, if any, and its end. */
struct command {
	pid_t pid;
	struct helper *helper; /* of its recording; NULL: none, */
	int helper_err;	       /* because of that */
	bool released;	       /* it runs */
	bool waited;	       /* it has ended, */
	int status;	       /* so */
};

/* What --ring-size means, in bytes: by the preloaded library, or else by eBPF. */
uint32_t recording_ring_size(const struct record_opts *o, bool preload);

/* Record the processes of @s, which are open, and of which @c is held if we started it.  Returns 0,
 * or EXIT_RECORD_FAILED after one sentence was logged, or REFUSED. */
int recording_run(struct session *s, const struct record_opts *o, struct command *c);

/* From here on nothing holds the command @c and its children. */
void recording_set_free(struct session *s, struct command *c);

#endif
