/* signals.h - the signals that end a recording, change it, or are meant for its command */
#ifndef RECORD_SIGNALS_H
#define RECORD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct helper;

/* SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, and SIGHUP unless we were started to ignore it
 * (nohup).  The others count even then: shells start what scripts put into the background with
 * SIGINT ignored, and the scripts end it with SIGINT anyway. */
void signals_of_ours(sigset_t *set);

/* Block them, so that they wait for a signalfd or signals_wait_for(); and have writes without a
 * reader fail rather than kill.  Call it after the command was forked. */
void signals_block(void);

/* Undo signals_block(): another command is going to be forked.  One of them that waits takes its
 * effect now. */
void signals_unblock(void);

/* Wait for the end of our child @pid; SIGTERM and SIGHUP are passed on to it, SIGINT and SIGQUIT
 * left to it, because the terminal sent it those too.  *@told_to_end is set to true with the first
 * that is passed on.  Returns its wait status, or -errno.  @helper may be NULL. */
int signals_wait_for(pid_t pid, struct helper *helper, bool *told_to_end);

/* Send our child @pid the signal @sig, SIGTERM or SIGHUP; by @helper, which may be NULL, where we
 * are not allowed to: the child may have changed its user. */
void signals_pass_on(pid_t pid, int sig, struct helper *helper);

#endif
