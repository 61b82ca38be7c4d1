/* tracer.h - hold each child of a process before its first instruction, by ptrace(2), in a thread
 *
 * The processes and all that they start are traced until the recording ends: signals come through
 * here and go on unchanged, job control works as without, and the end of this process, also by
 * SIGKILL, sets all of them free.
 */
#ifndef RECORD_TRACER_H
#define RECORD_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

struct tracer; /* opaque */

/* At which point of its life a process is held. */
enum tracer_what {
	TRACER_CHILD, /* a new process is held at its start */
	TRACER_EXEC,  /* a process is held that begins another program */
	TRACER_START, /* a process is held whose new program has its libraries mapped, and has not
			 called one of them */
	TRACER_EXIT,  /* a process is held at its end; its memory is still there, and so may be
			 other threads for a moment */
};

/* A process that is held, until tracer_let_go(), and why. */
struct tracer_event {
	enum tracer_what what;
	pid_t pid;
};

/* As launch_start(), in a thread of its own: *@out, which is NULL on failure, is the tracer of the
 * command then, and holds it and its children for @what, bits of enum seize_what. */
int tracer_start(struct tracer **out, char **argv, unsigned int what, pid_t *pid, int *ended);

/* Trace process @pid, which runs, with all its threads, each of which is stopped once for a moment.
 * *@t is made if it is NULL.  Returns 0 or -errno: most often another traces it. */
int tracer_attach(struct tracer **t, pid_t pid);

/* Hold the command @pid, our child, which runs, at its end, and nothing else.  *@out is NULL on
 * failure.  Returns as tracer_attach(). */
int tracer_attach_command(struct tracer **out, pid_t pid);

/* All are traced that are to be: give up what their tracing took. */
void tracer_give_up_privileges(struct tracer *t);

/* Let the command run, and hold its children from now on. */
void tracer_release(struct tracer *t);

/* Readable when there is an event. */
int tracer_fd(const struct tracer *t);

/* The next event, whose process is held until tracer_let_go().  False: there is none. */
bool tracer_next(struct tracer *t, struct tracer_event *event);

/* Let @pid go on.  @to_start: it begins a dynamically linked program, and TRACER_START is to tell
 * when glibc's loader has mapped what it needs; of another loader nothing more is told. */
void tracer_let_go(struct tracer *t, pid_t pid, bool to_start);

/* Set all processes free, and kill the command if tracer_release() was not called.  Returns true,
 * with its wait status in *@status, if the command has been waited for; so each time again. */
bool tracer_stop(struct tracer *t, int *status);

/* After tracer_stop(); NULL is allowed. */
void tracer_free(struct tracer *t);

#endif
