/* client.c - see client.h */
#include "record/control/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/clock.h"

#define PATIENCE   10	    /* seconds for an answer, and for a whole search */
#define AGAIN_NS   50000000 /* until a recorder is tried again for which too many wait */
#define MOST_ASKED 256	    /* recorders of our user */
#define LISTENS	   0x10000  /* __SO_ACCEPTCON, in /proc/net/unix */

/* What was found on the way to a recorder. */
struct search {
	pid_t pid;    /* that was named */
	pid_t found;  /* a recorder that records it; 0, as below: there is none */
	pid_t second; /* another one */
	pid_t others; /* a recorder of another user */
	uid_t user;   /* that user */
	pid_t silent; /* one that does not answer */
	bool full;    /* one has no room for us now */
	size_t nr;    /* that are asked */
	struct pollfd asked[MOST_ASKED];
	pid_t pids[MOST_ASKED];
};

void control_leave(struct control_peer *peer)
{
	if (peer->socket >= 0)
		close(peer->socket);
	peer->socket = -1;
}

/* Does @pid run the same program as we do? */
static bool is_mleak(pid_t pid)
{
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return !stat("/proc/self/exe", &ours) && !stat(path, &its) && ours.st_dev == its.st_dev &&
	       ours.st_ino == its.st_ino;
}

/* May we believe the process @pid of @user?  Any process can take the name of a recorder.  Root
 * believes another user's only where it was named, and is no other program. */
static bool is_trusted(const struct search *s, pid_t pid, uid_t user)
{
	return user == geteuid() || (!geteuid() && pid == s->pid && is_mleak(pid));
}

/* See connect_to(): @socket does not block. */
static int connect_socket(struct search *s, int socket, pid_t pid)
{
	struct sockaddr_un address;
	struct ucred other;
	socklen_t len, size = sizeof(other);
	int err = control_address(pid, &address, &len);

	if (err)
		return err;
	if (connect(socket, (struct sockaddr *)&address, len)) {
		err = -errno;
		/* whose it is, is not known yet: nobody waits for a name that another has taken */
		if (err == -EAGAIN)
			s->full = true;
		return err;
	}
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size))
		return -errno;
	if (other.pid != pid)
		return -ECONNREFUSED;
	if (is_trusted(s, pid, other.uid))
		return 0;
	if (!s->others) {
		s->others = pid;
		s->user = other.uid;
	}
	return -EPERM;
}

/* Connect to the recorder @pid, without waiting; what hinders is noted in @s.  Returns a socket, or
 * -errno: it is none, or none for us. */
static int connect_to(struct search *s, pid_t pid)
{
	const struct timeval patience = {.tv_sec = PATIENCE};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	err = connect_socket(s, fd, pid);
	if (!err && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
		     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
		     fcntl(fd, F_SETFL, 0)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
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

/* Ask the recorder @pid whether it records the process that is searched; take_answers() follows.
 * Returns 0, also where there is none, or -errno. */
static int ask_whether(struct search *s, pid_t pid)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "records %d", (int)s->pid);
	int fd = connect_to(s, pid);

	if (fd == -EMFILE || (fd >= 0 && s->nr == MOST_ASKED)) {
		if (fd >= 0)
			close(fd);
		return -EMFILE;
	}
	if (fd < 0)
		return 0;
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		close(fd);
		return 0;
	}
	s->pids[s->nr] = pid;
	s->asked[s->nr++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

static void take_answer(struct search *s, size_t i)
{
	char answer[3];
	ssize_t n = recv(s->asked[i].fd, answer, sizeof(answer), MSG_DONTWAIT);

	if (n == sizeof(answer) && !memcmp(answer, "ok ", sizeof(answer)))
		*(s->found ? &s->second : &s->found) = s->pids[i];
	close(s->asked[i].fd);
	s->asked[i].fd = -1; /* poll() leaves it out */
}

/* Of all that were asked, until @until_ns. */
static void take_answers(struct search *s, uint64_t until_ns)
{
	size_t left = s->nr;

	while (left) {
		uint64_t now_ns = clock_now_ns();
		int n = poll(s->asked, s->nr,
			     now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (size_t i = 0; i < s->nr; i++)
			if (s->asked[i].fd >= 0 && s->asked[i].revents) {
				take_answer(s, i);
				left--;
			}
	}
	for (size_t i = 0; i < s->nr; i++)
		if (s->asked[i].fd >= 0) {
			s->silent = s->pids[i];
			close(s->asked[i].fd);
		}
	s->nr = 0;
}

/* Ask all that the kernel lists. */
static int ask_all(struct search *s)
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
	while (!err && fgets(line, sizeof(line), list)) {
		const char *name = strstr(line, prefix);
		const char *number = name ? name + strlen(prefix) : "";
		char *end;
		long pid = strtol(number, &end, 10);
		unsigned int flags = 0;

		sscanf(line, "%*s %*s %*s %x", &flags);
		/* what it is connected by has the same name */
		if (name && pid > 0 && pid <= INT_MAX && pid != s->pid && end > number &&
		    *end == '\n' && flags & LISTENS)
			err = ask_whether(s, (pid_t)pid);
	}
	fclose(list);
	return err;
}

/* There is a recorder of another user. */
static int explain_others(const struct search *s)
{
	const int others = (int)s->others;
	const unsigned int user = (unsigned int)s->user;

	if (s->others == s->pid && !geteuid())
		log_error("process %d of user %u does not run this mleak: ask it as that user, or "
			  "with its own mleak",
			  others, user);
	else if (s->others == s->pid)
		log_error("recorder %d is of user %u: only that user and root may ask it", others,
			  user);
	else if (!geteuid())
		log_error("process %d is no recorder that can be asked, and none of root's records "
			  "it: give the number of the recorder, if it is another user's",
			  (int)s->pid);
	else
		log_error("none of your recorders records process %d; there is one of user %u, "
			  "process %d, which only that user and root may ask",
			  (int)s->pid, user, others);
	return -EPERM;
}

static int explain_search(const struct search *s)
{
	if (s->second) {
		log_error("recorders %d and %d both record process %d: give the number of one of "
			  "them in its place",
			  (int)s->found, (int)s->second, (int)s->pid);
		return -EEXIST;
	}
	if (s->silent)
		return explain_silence(s->silent, -EAGAIN);
	if (s->others && (s->others == s->pid || !kill(s->pid, 0) || errno != ESRCH))
		return explain_others(s);
	if (s->full) {
		log_error("too many wait for a recorder of process %d: try again", (int)s->pid);
		return -EAGAIN;
	}
	if (kill(s->pid, 0) && errno == ESRCH)
		log_error("there is no process %d", (int)s->pid);
	else
		log_error(
			"process %d is no recorder that can be asked, and none records it: give "
			"the number of a 'mleak record' that runs, or of a process that it records",
			(int)s->pid);
	return -ESRCH;
}

/* Look once.  Returns 0, also where nothing is found, or -errno. */
static int look(struct search *s, struct control_peer *peer, uint64_t until_ns)
{
	int err;

	peer->pid = s->pid;
	peer->socket = connect_to(s, s->pid);
	if (peer->socket >= 0)
		return 0;
	err = ask_all(s);
	take_answers(s, err ? 0 : until_ns);
	if (err || !s->found || s->second)
		return err;
	/* anew: it does not wait for long for one who is silent, as we were */
	peer->pid = s->found;
	peer->by_target = true;
	peer->socket = connect_to(s, s->found);
	return 0;
}

int control_find(struct control_peer *peer, pid_t pid)
{
	const struct timespec again = {.tv_nsec = AGAIN_NS};
	uint64_t until_ns = clock_now_ns() + PATIENCE * UINT64_C(1000000000);
	struct search s;
	int err;

	for (;;) {
		s = (struct search){.pid = pid};
		*peer = (struct control_peer){.socket = -1};
		err = look(&s, peer, until_ns);
		if (err) {
			log_error("cannot look for recorders: %s", strerror(-err));
			return err;
		}
		if (peer->socket >= 0)
			return 0;
		if (!s.full || s.second || clock_now_ns() >= until_ns)
			return explain_search(&s);
		nanosleep(&again, NULL);
	}
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
