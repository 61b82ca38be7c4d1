/* helper_serve.c - see helper_serve.h */
#include "record/helper/helper_serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/inject/inject.h"
#include "record/privilege/helper_wire.h"
#include "record/probe/links.h"
#include "record/ptrace/seize.h"
#include "record/reach/freeze.h"
#include "record/reach/roots.h"
#include "record/target/sideband.h"
#include "record/target/target.h"

#define STATUS_SIZE 8192 /* bytes: more than /proc/PID/status has */
#define CLEAN_UP_NS 10000000000
#define DYING_NS    200000000

/* A process that may be touched. */
struct ward {
	pid_t pid;
	int pidfd;
	struct stop hold;
};

struct server {
	const struct helper_opts *opts;
	pid_t recorder;
	struct ward *wards;
	size_t nr, room;
	struct target target; /* of the current request */
	struct helper_request request;
	struct helper_reply reply;
};

static struct ward *find_ward(struct server *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->wards[i].pid == pid && !proc_is_reaped(s->wards[i].pidfd))
			return &s->wards[i];
	return NULL;
}

static void forget_reaped(struct server *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (proc_is_reaped(s->wards[i].pidfd))
			close(s->wards[i].pidfd);
		else
			s->wards[kept++] = s->wards[i];
	s->nr = kept;
}

/* NULL: there is no such process, or no memory. */
static struct ward *add_ward(struct server *s, pid_t pid)
{
	int fd;

	forget_reaped(s);
	if (grow_array(&s->wards, s->nr, &s->room, sizeof(*s->wards)))
		return NULL;
	fd = proc_pidfd(pid);
	if (fd < 0)
		return NULL;
	s->wards[s->nr] = (struct ward){.pid = pid, .pidfd = fd};
	return &s->wards[s->nr++];
}

/* The number in the line @name of /proc/@pid/status; 0: none. */
static pid_t status_of(pid_t pid, const char *name)
{
	char text[STATUS_SIZE];
	const char *line;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	line = strstr(text, name);
	return line ? (pid_t)strtol(line + strlen(name), NULL, 10) : 0;
}

/* Has @pid mapped the memory of the recording?  It has that from one that is recorded, though its
 * parent may have ended. */
static bool has_memory(const struct server *s, pid_t pid)
{
	const struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	struct maps maps = {0};
	bool has = s->opts->memory_inode && pid != s->recorder && !target_read_maps(&t, &maps) &&
		   maps_have_file(&maps, s->opts->memory_dev, s->opts->memory_inode);

	maps_release(&maps);
	return has;
}

/* The process @pid, if it may be touched: one of those given, a child of one, one that the
 * recorder traces, which the kernel allows it for no other, or one that has the memory. */
static struct ward *ward_of(struct server *s, pid_t pid)
{
	struct ward *w = find_ward(s, pid);
	bool ours;

	if (w || !s->opts->follow || pid <= 0)
		return w;
	w = add_ward(s, pid); /* before it is examined: its number stays its own */
	if (!w)
		return NULL;
	ours = find_ward(s, status_of(pid, "\nPPid:")) ||
	       proc_has_thread(s->recorder, status_of(pid, "\nTracerPid:")) || has_memory(s, pid);
	if (ours && !proc_is_reaped(w->pidfd))
		return w;
	close(w->pidfd);
	s->nr--;
	return NULL;
}

/* What is mapped at the address given, and nothing else that the process could open. */
static int open_mapped(struct server *s)
{
	struct maps maps = {0};
	const struct mlk_mapping *m;
	int fd = target_read_maps(&s->target, &maps);

	if (!fd) {
		m = maps_find(&maps, s->request.addr);
		fd = m && m->inode ? target_open_mapped(&s->target, m) : -ENOENT;
	}
	maps_release(&maps);
	return fd;
}

/* @file is the descriptor that came with the request. */
static int link_probes(struct server *s, int file)
{
	const struct helper_probes *p = &s->request.probes;
	struct helper_link l = {.of = {s->target.pid, s->target.task},
				.program = p->program,
				.file = file,
				.is_return = p->is_return,
				.multi = p->multi,
				.session = p->session,
				.keeps = p->keeps,
				.nr = p->nr,
				.offsets = p->offsets,
				.cookies = p->cookies};
	bool known = p->keeps && !p->multi;

	for (size_t i = 0; i < s->opts->nr_programs; i++)
		if (s->opts->programs[i] == p->program) {
			known = true;
			l.program = s->opts->program_fds[i];
		}
	if (!known || file < 0 || !p->nr || p->nr > HELPER_MAX_PROBES)
		return -EINVAL;
	return links_make(&l);
}

static int read_memory(struct server *s)
{
	if (s->request.len > HELPER_MAX_READ)
		return -EINVAL;
	return target_read_memory(&s->target, s->request.addr, s->reply.bytes, s->request.len);
}

static int send_signal(const struct ward *w, int sig)
{
	if (sig != SIGTERM && sig != SIGHUP)
		return -EINVAL;
	return syscall(SYS_pidfd_send_signal, w->pidfd, sig, NULL, 0) ? -errno : 0;
}

static int hold(struct server *s, struct ward *w)
{
	int err = stop_begin(&w->hold, w->pid, NULL);

	s->reply.bytes[0] = !err && w->hold.stopped;
	return err;
}

static int let_go(struct ward *w)
{
	stop_end(&w->hold, w->pid);
	return w->hold.seized ? -EBUSY : 0;
}

/* Take out what was put into process @pid, and reply with the reason why not, and with the cost. */
static int eject(struct server *s, pid_t pid)
{
	struct inject_cost cost = {0};
	int err = inject_remove(pid, &cost, (char *)s->reply.bytes);

	memcpy(s->reply.bytes + HELPER_WHY, &cost, sizeof(cost));
	return err;
}

/* The same of functions that are to be changed, too. */
static int inject(struct server *s, pid_t pid)
{
	struct inject_library library;
	struct inject_cost cost = {0};
	int err;

	_Static_assert(sizeof(library) <= sizeof(s->request.library), "a request has room for it");
	memcpy(&library, s->request.library, sizeof(library));
	err = inject_add(pid, &library, &cost, (char *)s->reply.bytes);
	memcpy(s->reply.bytes + HELPER_WHY, &cost, sizeof(cost));
	return err;
}

/* Carry out the request for the process @w.  Returns the result, or, with *@fd set, 0. */
static int serve(struct server *s, struct ward *w, int file, int *fd)
{
	const struct helper_request *r = &s->request;

	switch (r->op) {
	case HELPER_OPEN:
		*fd = (uint32_t)r->what < HELPER_NR_FILES
			      ? target_open_file(&s->target, (enum helper_file)r->what)
			      : -EINVAL;
		break;
	case HELPER_OPEN_MAPPED:
		*fd = open_mapped(s);
		break;
	case HELPER_ROOTS:
		*fd = roots_to_file(&s->target);
		break;
	case HELPER_FREEZE:
		return file < 0 ? -EINVAL : freeze_take(&s->target, file, r->addr);
	case HELPER_LINK:
		*fd = link_probes(s, file);
		break;
	case HELPER_LISTEN:
		*fd = sideband_open_event(s->target.task, r->what);
		break;
	case HELPER_READ:
		return read_memory(s);
	case HELPER_SYSCALL:
		return target_read_syscall(&s->target, s->target.task, (char *)s->reply.bytes,
					   sizeof(s->reply.bytes));
	case HELPER_HOLD:
		return hold(s, w);
	case HELPER_LET_GO:
		return let_go(w);
	case HELPER_SIGNAL:
		return send_signal(w, r->what);
	case HELPER_EJECT:
		return eject(s, w->pid);
	case HELPER_INJECT:
		return inject(s, w->pid);
	}
	return *fd < 0 ? *fd : 0;
}

/* Serve the request that came with @file, which may be -1.  Returns 0, or -errno: the recorder is
 * gone. */
static int answer(struct server *s, int socket, int file)
{
	const struct helper_task *of = &s->request.of;
	struct ward *w = ward_of(s, of->pid);
	int fd = -1, err;

	memset(&s->reply, 0, sizeof(s->reply));
	s->reply.result = -EPERM;
	s->target.pid = of->pid;
	s->target.task = of->task;
	if (w && proc_has_thread(of->pid, of->task))
		s->reply.result = serve(s, w, file, &fd);
	else if (w)
		s->reply.result = -ESRCH;
	/* Else it was another's, with its number. */
	if (w && proc_is_reaped(w->pidfd))
		s->reply.result = -ESRCH;
	err = helper_send(socket, &s->reply, sizeof(s->reply), s->reply.result ? -1 : fd);
	if (fd >= 0)
		close(fd);
	return err;
}

/* The recorder is gone, and if it was killed, it has left its code in @ward.  What keeps that there
 * may pass: a thread that runs on, or another mleak that has its turn.  One that ended by itself
 * has tried, and waits for us. */
static void clean_up(const struct server *s, const struct ward *ward)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	const uint64_t start_ns = clock_now_ns();
	struct inject_cost cost = {0};
	char why[INJECT_WHY];
	uint64_t most_ns;

	while (!proc_is_reaped(ward->pidfd) && inject_is_in(ward->pid)) {
		int err = inject_remove(ward->pid, &cost, why);

		if (!err || err == -ENOTSUP)
			return;
		nanosleep(&moment, NULL);
		/* one that was killed is no parent any more, but for its last milliseconds */
		most_ns = getppid() == s->recorder ? DYING_NS : CLEAN_UP_NS;
		if (clock_now_ns() - start_ns > most_ns)
			return;
	}
}

void helper_serve(int socket, const struct helper_opts *opts)
{
	struct server *s = calloc(1, sizeof(*s));
	int file, err = s ? 0 : -ENOMEM;

	if (s) {
		s->opts = opts;
		s->recorder = getppid();
		s->target.pidfd = -1;
	}
	for (size_t i = 0; !err && i < opts->nr; i++)
		add_ward(s, opts->pids[i]);
	while (!err) {
		err = helper_receive(socket, &s->request, sizeof(s->request), &file);
		if (!err)
			err = answer(s, socket, file);
		if (file >= 0)
			close(file);
	}
	for (size_t i = 0; s && i < s->nr; i++)
		clean_up(s, &s->wards[i]);
}
