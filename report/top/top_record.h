/* top_record.h - the recorder, as a process of its own whose trace comes through a pipe */
#ifndef REPORT_TOP_RECORD_H
#define REPORT_TOP_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "report/top/top_options.h"

/* Such a process. */
struct top_record {
	pid_t pid;    /* 0: it has not begun, or its end was seen */
	int pipe;     /* of its trace */
	int told;     /* has a byte once the recording has begun */
	int status;   /* as waitpid(2) has it */
	bool command; /* it runs one */
	bool begun;   /* see top_record_begun() */
	int said;     /* its stderr, a file without a name; -1: it is ours */
};

/* Start it as @opts say; @mask is what its signal mask shall be.  @quiet: the terminal is in use,
 * so what it and its command say is held back.  Returns 0 or -errno. */
int top_record_start(struct top_record *record, const struct top_opts *opts, const sigset_t *mask,
		     bool quiet);

/* Has the recording begun?  Else what is in the trace is only what was there before. */
bool top_record_begun(struct top_record *record);

/* Pass on the signal @sig, which it did not get. */
void top_record_signal(const struct top_record *record, int sig);

/* Have it end the recording; a command that it runs goes on. */
void top_record_stop(const struct top_record *record);

/* Has it ended?  It is not waited for. */
bool top_record_ended(struct top_record *record);

/* Close the pipe; it ends for lack of a reader if it has not ended yet. */
void top_record_release(struct top_record *record);

#endif
