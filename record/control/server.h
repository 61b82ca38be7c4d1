/* server.h - the socket by which a recorder is asked while it records
 *
 * A socket of the Unix domain with an abstract name: it is gone with the recorder, however that
 * ends, and needs no folder that the recorder may write to.  Messages keep their bounds
 * (SOCK_SEQPACKET); each is a request of request.h, and has one answer.
 */
#ifndef RECORD_CONTROL_SERVER_H
#define RECORD_CONTROL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define CONTROL_MAX_LINE   512
#define CONTROL_MAX_ANSWER 8192

/* A name has this, the inode of the recorder's pid namespace, a slash and its number there. */
#define CONTROL_PREFIX "mleak-record/"

/* Where the recorder with the number @pid, of our pid namespace, is reached: *@len is the length of
 * the address.  Returns 0 or -errno. */
int control_address(pid_t pid, struct sockaddr_un *address, socklen_t *len);

/* One client at a time is heard; the others wait.  Descriptors are -1 where there is none. */
struct control {
	int listener, client;
	uint64_t look_ns;  /* when it is looked again whether there is something to do */
	uint64_t until_ns; /* so long may the client be silent */
};

/* Listen.  On failure, -errno, there is nothing to close, and serving it does nothing. */
int control_open(struct control *c);

/* Write the answer to the @len bytes at @line, which may be anything, to the CONTROL_MAX_ANSWER
 * bytes at @answer. */
typedef void control_answer_fn(void *ctx, const char *line, size_t len, char *answer);

/* Answer what has come, without ever waiting; to be called again and again. */
void control_serve(struct control *c, uint64_t now_ns, control_answer_fn *answer, void *ctx);

/* Is there a client, who may say something soon? */
static inline bool control_is_asked(const struct control *c)
{
	return c->client >= 0;
}

/* Nobody is heard any more. */
void control_close(struct control *c);

#endif
