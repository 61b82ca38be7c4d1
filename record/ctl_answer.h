/* ctl_answer.h - what a recorder does when `mleak ctl` asks */
#ifndef RECORD_CTL_ANSWER_H
#define RECORD_CTL_ANSWER_H

#include <stddef.h>

#include "record/session/session.h"
#include "record/switch.h"

/* What requests are about, for control_serve(). */
struct ctl_answer {
	struct session *session;
	struct switcher *switcher;
};

/* A control_answer_fn of record/control/server.h; @ctx is a struct ctl_answer. */
void ctl_answer(void *ctx, const char *line, size_t len, char *answer);

/* Somebody sent SIGUSR2: begin another trace, or mark this moment. */
void ctl_on_signal(const struct ctl_answer *a);

#endif
