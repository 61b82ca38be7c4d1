/* server.c - see server.h */
#include "record/control/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS	   20000000u   /* between two looks: nobody can have the recorder look more often */
#define SILENT_NS  2000000000u /* a client that says nothing is dropped */
#define REFUSED_NS 100000000u  /* so long is nobody heard after one who may not ask */
#define WAITING	   8	       /* clients that may wait */
#define AT_ONCE	   8	       /* requests that are answered in one look */

int control_address(pid_t pid, struct sockaddr_un *address, socklen_t *len)
{
	struct stat ns;
	int n;

	if (stat("/proc/self/ns/pid", &ns))
		return -errno;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* abstract: it begins with a zero, and has none at its end */
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, CONTROL_PREFIX "%llu/%d",
		     (unsigned long long)ns.st_ino, (int)pid);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

int control_open(struct control *c)
{
	struct sockaddr_un address;
	socklen_t len;
	int err = control_address(getpid(), &address, &len);

	*c = (struct control){.listener = -1, .client = -1};
	if (err)
		return err;
	c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->listener < 0)
		return -errno;
	if (!bind(c->listener, (struct sockaddr *)&address, len) && !listen(c->listener, WAITING))
		return 0;
	err = -errno;
	control_close(c);
	return err;
}

static void drop_client(struct control *c)
{
	if (c->client >= 0)
		close(c->client);
	c->client = -1;
}

/* Who is at the other end of @socket may do all that signals can: it is our user, or root. */
static int may_ask(int socket)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.uid == geteuid() || !peer.uid);
}

static void take_client(struct control *c, uint64_t now_ns)
{
	static const char no[] = "no only the recorder's user and root may ask it";

	c->client = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->client < 0)
		return;
	c->until_ns = now_ns + SILENT_NS;
	if (may_ask(c->client))
		return;
	send(c->client, no, sizeof(no) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	drop_client(c);
	c->look_ns = now_ns + REFUSED_NS;
}

/* Answer one request.  Returns whether there may be another. */
static int answer_one(struct control *c, control_answer_fn *answer, void *ctx)
{
	char line[CONTROL_MAX_LINE], text[CONTROL_MAX_ANSWER] = "";
	/* the real length, also of one that is cut */
	ssize_t n = recv(c->client, line, sizeof(line), MSG_TRUNC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		drop_client(c);
		return 0;
	}
	if ((size_t)n > sizeof(line))
		n = 0; /* which is no request, either */
	answer(ctx, line, (size_t)n, text);
	/* who does not read the answers, gets none */
	if (send(c->client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		drop_client(c);
	return c->client >= 0;
}

void control_serve(struct control *c, uint64_t now_ns, control_answer_fn *answer, void *ctx)
{
	if (c->listener < 0 || now_ns < c->look_ns)
		return;
	if (c->client < 0) {
		c->look_ns = now_ns + LOOK_NS;
		take_client(c, now_ns);
	}
	for (int i = 0; c->client >= 0 && i < AT_ONCE && answer_one(c, answer, ctx); i++)
		c->until_ns = now_ns + SILENT_NS;
	if (now_ns > c->until_ns)
		drop_client(c);
}

void control_close(struct control *c)
{
	drop_client(c);
	if (c->listener >= 0)
		close(c->listener);
	c->listener = -1;
}
