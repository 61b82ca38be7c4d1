/* helper.c - the recorder's end; see helper.h */
#include "record/privilege/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/privilege/helper_wire.h"
#include "record/privilege/privileges.h"

struct helper {
	int socket;
	pid_t pid;  /* 0: it has ended, and was waited for, */
	int status; /* with this wait status */
	struct helper_request request;
	struct helper_reply reply;
};

/* Room for the control message of one descriptor. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int helper_send(int socket, const void *data, size_t len, int fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int helper_receive(int socket, void *data, size_t len, int *fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if ((size_t)n == len && !(msg.msg_flags & MSG_TRUNC))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPROTO;
}

/* Of all that was inherited keep only the socket: a link lives as long as anyone has it open. */
static void close_others(int socket)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	for (int fd = STDERR_FILENO + 1; fd < socket; fd++)
		close(fd);
	syscall(SYS_close_range, (unsigned int)socket + 1, ~0u, 0);
}

/* Receive @nr numbers, into an array that lives as long as the process; each with a descriptor, if
 * @fds is given.  Returns NULL when that fails. */
static int *receive_numbers(int socket, size_t nr, int **fds)
{
	int *numbers = calloc(nr + 1, sizeof(*numbers)), none, err = numbers ? 0 : -ENOMEM;

	if (fds)
		*fds = calloc(nr + 1, sizeof(**fds));
	if (fds && !*fds)
		err = -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++)
		err = helper_receive(socket, &numbers[i], sizeof(numbers[i]),
				     fds ? &(*fds)[i] : &none);
	return err ? NULL : numbers;
}

static int send_numbers(int socket, const int *numbers, size_t nr, bool are_fds)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++)
		err = helper_send(socket, &numbers[i], sizeof(numbers[i]),
				  are_fds ? numbers[i] : -1);
	return err;
}

/* Wait until the recorder knows what there is to do, and do it until that has ended. */
static void become(int socket, helper_serve_fn *serve)
{
	struct helper_setup setup;
	struct helper_opts opts;
	int none, *fds;

	prctl(PR_SET_NAME, "mleak-helper", 0, 0, 0);
	close_others(socket);
	/* Processes with the recorder's user id, like the recorder itself, must not get at it. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (helper_receive(socket, &setup, sizeof(setup), &none))
		_exit(0);
	opts = setup.opts;
	privileges_keep_in_thread(opts.caps);
	opts.pids = receive_numbers(socket, opts.nr, NULL);
	opts.programs = receive_numbers(socket, opts.nr_programs, &fds);
	opts.program_fds = fds;
	if (opts.pids && opts.programs)
		serve(socket, &opts);
	_exit(0);
}

int helper_start(struct helper **out, helper_serve_fn *serve)
{
	struct helper *h = calloc(1, sizeof(*h));
	sigset_t all, before;
	int ends[2];

	*out = NULL;
	if (!h)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		free(h);
		return -errno;
	}
	/* It ends when the recorder's end is closed, and by SIGKILL. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	h->pid = fork();
	if (!h->pid) {
		close(ends[0]);
		become(ends[1], serve);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	h->socket = ends[0];
	if (h->pid < 0) {
		int err = -errno;

		close(h->socket);
		free(h);
		return err;
	}
	*out = h;
	return 0;
}

int helper_begin(struct helper *h, const struct helper_opts *opts)
{
	const struct helper_setup setup = {*opts};
	int err = helper_send(h->socket, &setup, sizeof(setup), -1);

	if (!err)
		err = send_numbers(h->socket, opts->pids, opts->nr, false);
	return err ? err : send_numbers(h->socket, opts->programs, opts->nr_programs, true);
}

/* It does not answer: it has ended, or was ended. */
static void wait_for_end(struct helper *h)
{
	while (h->pid && waitpid(h->pid, &h->status, 0) < 0)
		if (errno != EINTR) {
			h->status = 0;
			break;
		}
	h->pid = 0;
}

/* Ask, with @fd if that is not negative; *@got is the descriptor that came back, or -1. */
static int ask(struct helper *h, int fd, int *got)
{
	int none, err = helper_send(h->socket, &h->request, sizeof(h->request), fd);

	if (!err)
		err = helper_receive(h->socket, &h->reply, sizeof(h->reply), got ? got : &none);
	else if (got)
		*got = -1;
	if (err) {
		shutdown(h->socket, SHUT_RDWR); /* should it still live, it ends by that */
		wait_for_end(h);
	}
	return err ? -EPERM : h->reply.result;
}

/* The same for a descriptor, which is returned, or -errno. */
static int ask_for_fd(struct helper *h, int fd)
{
	int got, err = ask(h, fd, &got);

	return err ? err : got;
}

static struct helper_request *begin(struct helper *h, enum helper_op op,
				    const struct helper_task *of)
{
	memset(&h->request, 0, sizeof(h->request));
	h->request.op = op;
	h->request.of = *of;
	return &h->request;
}

int helper_open(struct helper *h, const struct helper_task *of, enum helper_file file)
{
	begin(h, HELPER_OPEN, of)->what = file;
	return ask_for_fd(h, -1);
}

int helper_open_mapped(struct helper *h, const struct helper_task *of, const struct mlk_mapping *m)
{
	begin(h, HELPER_OPEN_MAPPED, of)->addr = m->start;
	return ask_for_fd(h, -1);
}

int helper_read(struct helper *h, const struct helper_task *of, uint64_t addr, void *to, size_t len)
{
	struct helper_request *r = begin(h, HELPER_READ, of);
	int err;

	if (len > HELPER_MAX_READ)
		return -EINVAL;
	r->addr = addr;
	r->len = (uint32_t)len;
	err = ask(h, -1, NULL);
	if (!err)
		memcpy(to, h->reply.bytes, len);
	return err;
}

int helper_syscall(struct helper *h, const struct helper_task *of, char *text, size_t size)
{
	int err;

	begin(h, HELPER_SYSCALL, of);
	err = ask(h, -1, NULL);
	text[0] = '\0';
	if (!err)
		snprintf(text, size, "%.*s", HELPER_MAX_READ, (const char *)h->reply.bytes);
	return err;
}

int helper_roots(struct helper *h, const struct helper_task *of)
{
	begin(h, HELPER_ROOTS, of);
	return ask_for_fd(h, -1);
}

int helper_listen(struct helper *h, const struct helper_task *of, int cpu)
{
	begin(h, HELPER_LISTEN, of)->what = cpu;
	return ask_for_fd(h, -1);
}

int helper_freeze(struct helper *h, const struct helper_task *of, int fd, uint64_t room)
{
	begin(h, HELPER_FREEZE, of)->addr = room;
	return ask(h, fd, NULL);
}

int helper_link(struct helper *h, const struct helper_link *link)
{
	struct helper_probes *p = &begin(h, HELPER_LINK, &link->of)->probes;

	if (link->nr > HELPER_MAX_PROBES)
		return -EINVAL;
	p->program = link->program;
	p->nr = link->nr;
	p->is_return = link->is_return;
	p->multi = link->multi;
	p->keeps = link->keeps;
	p->session = link->session;
	memcpy(p->offsets, link->offsets, link->nr * sizeof(p->offsets[0]));
	memcpy(p->cookies, link->cookies, link->nr * sizeof(p->cookies[0]));
	return ask_for_fd(h, link->file);
}

int helper_hold(struct helper *h, pid_t pid, bool *stopped)
{
	int err;

	begin(h, HELPER_HOLD, &(struct helper_task){pid, pid});
	err = ask(h, -1, NULL);
	*stopped = !err && h->reply.bytes[0];
	return err;
}

bool helper_let_go(struct helper *h, pid_t pid)
{
	begin(h, HELPER_LET_GO, &(struct helper_task){pid, pid});
	return ask(h, -1, NULL) != -EBUSY;
}

int helper_signal(struct helper *h, pid_t pid, int sig)
{
	begin(h, HELPER_SIGNAL, &(struct helper_task){pid, pid})->what = sig;
	return ask(h, -1, NULL);
}

/* What was requested of what is in a process: the result with its cost and reason. */
static int ask_of_code(struct helper *h, void *cost, size_t bytes, char *why)
{
	int err = ask(h, -1, NULL);

	if (!h->pid) {
		memset(cost, 0, bytes);
		snprintf(why, HELPER_WHY,
			 "cannot be reached: mleak's helper process has ended (%s %d)",
			 WIFSIGNALED(h->status) ? "signal" : "exit status",
			 WIFSIGNALED(h->status) ? WTERMSIG(h->status) : WEXITSTATUS(h->status));
		return -EPIPE;
	}
	memcpy(cost, h->reply.bytes + HELPER_WHY, bytes);
	if (h->reply.bytes[0] || !err)
		snprintf(why, HELPER_WHY, "%.*s", HELPER_WHY - 1, (const char *)h->reply.bytes);
	else
		snprintf(why, HELPER_WHY, "cannot be changed: %s", strerror(-err));
	return err;
}

int helper_eject(struct helper *h, pid_t pid, void *cost, size_t bytes, char *why)
{
	begin(h, HELPER_EJECT, &(struct helper_task){pid, pid});
	return ask_of_code(h, cost, bytes, why);
}

int helper_inject(struct helper *h, pid_t pid, const void *library, size_t library_bytes,
		  void *cost, size_t bytes, char *why)
{
	struct helper_request *r = begin(h, HELPER_INJECT, &(struct helper_task){pid, pid});

	if (library_bytes > sizeof(r->library))
		return -EINVAL;
	memcpy(r->library, library, library_bytes);
	return ask_of_code(h, cost, bytes, why);
}

void helper_stop(struct helper *h)
{
	if (!h)
		return;
	close(h->socket);
	wait_for_end(h);
	free(h);
}
