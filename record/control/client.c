/* client.c - see client.h */
#include "record/control/client.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/proc.h"

#define PATIENCE 10	 /* seconds for an answer */
#define LISTENS	 0x10000 /* __SO_ACCEPTCON, in /proc/net/unix */

/* What was found on the way to a recorder. */
struct search {
	struct control_peer *peer;
	pid_t pid;    /* that was named */
	pid_t others; /* a recorder of another user; 0: there is none */
	uid_t user;   /* that user */
	pid_t second; /* another one that records the process */
	pid_t silent; /* one that does not answer */
};

void control_leave(struct control_peer *peer)
{
	if (peer->socket >= 0)
		close(peer->socket);
	peer->socket = -1;
}

/* Connect to the recorder @pid of our user.  Returns 0, -errno, -EPERM: it is another user's, noted
 * in @s, or -ECONNREFUSED: there is none. */
static int connect_to(struct search *s, struct control_peer *peer, pid_t pid)
{
	const struct timeval patience = {.tv_sec = PATIENCE};
	struct sockaddr_un address;
	struct ucred other;
	socklen_t len, size = sizeof(other);
	int err = control_address(pid, &address, &len);

	peer->pid = pid;
	peer->socket = -1;
	if (err)
		return err;
	peer->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (peer->socket < 0)
		return -errno;
	setsockopt(peer->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(peer->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(peer->socket, (struct sockaddr *)&address, len) ||
	    getsockopt(peer->socket, SOL_SOCKET, SO_PEERCRED, &other, &size)) {
		err = -errno;
	} else if (other.pid != pid) {
		err = -ECONNREFUSED; /* somebody else has taken the name */
	} else if (geteuid() && other.uid != geteuid()) {
		s->others = pid;
		s->user = other.uid;
		err = -EPERM;
	}
	if (err)
		control_leave(peer);
	if (err == -EAGAIN)
		s->silent = pid;
	return err;
}

/* One line to the recorder, and its answer.  Returns 0, 1: it refuses, or -errno. */
static int exchange(struct control_peer *peer, const char *line, size_t len)
{
	ssize_t n;
	bool ok;

	if (send(peer->socket, line, len, MSG_NOSIGNAL) < 0)
		return -errno;
	n = recv(peer->socket, peer->answer, CONTROL_MAX_ANSWER, 0);
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	peer->answer[n] = '\0';
	ok = !strncmp(peer->answer, "ok ", 3);
	if (!ok && strncmp(peer->answer, "no ", 3) != 0)
		return -EPROTO;
	memmove(peer->answer, peer->answer + 3, (size_t)n - 2);
	return !ok;
}

static int explain_silence(pid_t recorder, int err)
{
	if (err == -EAGAIN)
		log_error("recorder %d does not answer: it is stopped, or waits for its disk",
			  (int)recorder);
	else if (err == -ECONNRESET || err == -EPIPE)
		log_error("recorder %d has ended", (int)recorder);
	else
		log_error("cannot ask recorder %d: %s", (int)recorder, strerror(-err));
	return err;
}

/* Does the recorder @pid record the process that is searched? */
static void try_recorder(struct search *s, pid_t pid)
{
	struct control_peer peer;
	char line[64];
	int n = snprintf(line, sizeof(line), "records %d", (int)s->pid);
	int err = connect_to(s, &peer, pid);

	if (!err)
		err = exchange(&peer, line, (size_t)n);
	if (err == -EAGAIN)
		s->silent = pid;
	if (err) {
		control_leave(&peer);
	} else if (s->peer->socket >= 0) {
		s->second = pid;
		control_leave(&peer);
	} else {
		*s->peer = peer;
		s->peer->by_target = true;
	}
}

/* All that the kernel lists. */
static int try_all(struct search *s)
{
	struct sockaddr_un address;
	char line[256], prefix[128];
	socklen_t len;
	int err = control_address(1, &address, &len);
	FILE *list = err ? NULL : fopen("/proc/net/unix", "re");

	if (!list)
		return err ? err : -errno;
	/* without the number; the kernel shows the zero as '@' */
	snprintf(prefix, sizeof(prefix), " @%s", address.sun_path + 1);
	prefix[strlen(prefix) - 1] = '\0';
	while (fgets(line, sizeof(line), list)) {
		const char *name = strstr(line, prefix);
		const char *number = name ? name + strlen(prefix) : "";
		char *end;
		long pid = strtol(number, &end, 10);
		unsigned int flags = 0;

		sscanf(line, "%*s %*s %*s %x", &flags);
		/* what it is connected by has the same name */
		if (name && pid > 0 && end > number && *end == '\n' && flags & LISTENS)
			try_recorder(s, (pid_t)pid);
	}
	fclose(list);
	return 0;
}

static int explain_search(const struct search *s)
{
	if (s->second) {
		log_error("recorders %d and %d both record process %d: give the number of one of "
			  "them in its place",
			  (int)s->peer->pid, (int)s->second, (int)s->pid);
		return -EEXIST;
	}
	if (s->others) {
		if (s->others == s->pid)
			log_error("recorder %d is of user %u: only that user and root may ask it",
				  (int)s->others, (unsigned int)s->user);
		else
			log_error("none of your recorders records process %d; there is one of user "
				  "%u, process %d, which only that user and root may ask",
				  (int)s->pid, (unsigned int)s->user, (int)s->others);
		return -EPERM;
	}
	if (s->silent)
		return explain_silence(s->silent, -EAGAIN);
	if (kill(s->pid, 0) && errno == ESRCH)
		log_error("there is no process %d", (int)s->pid);
	else
		log_error(
			"process %d is no recorder that can be asked, and none records it: give "
			"the number of a 'mleak record' that runs, or of a process that it records",
			(int)s->pid);
	return -ESRCH;
}

int control_find(struct control_peer *peer, pid_t pid)
{
	struct search s = {.peer = peer, .pid = pid};
	int err;

	*peer = (struct control_peer){.socket = -1};
	err = connect_to(&s, peer, pid);
	if (!err)
		return 0;
	if (err == -ECONNREFUSED)
		err = try_all(&s);
	if (err && err != -EPERM && err != -EAGAIN) {
		log_error("cannot look for recorders: %s", strerror(-err));
		return err;
	}
	return peer->socket >= 0 && !s.second ? 0 : explain_search(&s);
}

int control_ask(struct control_peer *peer, const char *format, ...)
{
	char line[CONTROL_MAX_LINE];
	va_list args;
	int n, err;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(line))
		err = -EMSGSIZE;
	else
		err = exchange(peer, line, (size_t)n);
	return err < 0 ? explain_silence(peer->pid, err) : err;
}
