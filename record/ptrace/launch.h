/* launch.h - start a command and hold it where all it starts with is mapped but has not run yet */
#ifndef RECORD_LAUNCH_H
#define RECORD_LAUNCH_H

#include <sys/types.h>

/* The command ended before that, of its own accord: it was not for us to say why. */
#define LAUNCH_ENDED (-1)

/* A child that waits to become the command. */
struct launch {
	pid_t pid;
	int report, go; /* pipes from and to it */
};

/* Start the child.  The calling thread, whose end is its parent's end to PR_SET_PDEATHSIG, should
 * live as long as this process.  Returns 0, or EXIT_RECORD_FAILED after one sentence was logged. */
int launch_fork(struct launch *l, char **argv);

/* execvp(3) of @name failed with the errno @err: log so, in one sentence.  Returns the exit status
 * to give, 126 or 127. */
int launch_explain(const char *name, int err);

/* In the child, where execvp(3) failed: tell the parent errno through the pipe @report, and end. */
__attribute__((noreturn)) void launch_not_begun(int report);

/* In place of launch_start(): no child is left. */
void launch_give_up(const struct launch *l);

/*
 * Let the child become @argv (searched in PATH), and let it run until the dynamic loader has
 * mapped and relocated everything; there it is stopped, before its first allocation.  It stays
 * traced by the calling thread, and is killed should that end before launch_release().
 *
 * On success *pid is the child.  On failure one sentence was logged, no child is left, and the
 * result is the exit status to give: 126, 127 or 125; or it is LAUNCH_ENDED, without a sentence,
 * and *ended the wait status.  Returns 0 on success.
 */
int launch_start(const struct launch *l, char **argv, pid_t *pid, int *ended);

/* Let the child run free.  Returns 0 or -errno. */
int launch_release(pid_t pid);

/* Kill and reap a child that was not released. */
void launch_abort(pid_t pid);

#endif
