/* client.h - find a recorder, and ask it */
#ifndef RECORD_CONTROL_CLIENT_H
#define RECORD_CONTROL_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/control/server.h"

/* A recorder that can be asked: owns its socket. */
struct control_peer {
	int socket;			     /* -1: none */
	pid_t pid;			     /* the recorder */
	bool by_target;			     /* it was named by a process that it records */
	char answer[CONTROL_MAX_ANSWER + 1]; /* the last one, without "ok " or "no " */
};

/* Find the recorder @pid, or that which records the process @pid; control_leave() in any case.  On
 * failure one sentence was logged.  Returns 0 or -errno. */
int control_find(struct control_peer *peer, pid_t pid);

/* Ask for what @format makes, a request of request.h: its answer is in peer->answer.  Returns 0; 1
 * if the recorder refuses, why is the answer; or -errno after one sentence was logged. */
int control_ask(struct control_peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Close the socket. */
void control_leave(struct control_peer *peer);

#endif
