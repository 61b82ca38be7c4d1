/* tracer.c - see tracer.h
 *
 * All of ptrace(2) is for the thread alone that traces.  That thread waits for signals (SIGCHLD
 * reports stops) and for orders; what it has to tell goes through a list.
 */
#include "record/ptrace/tracer.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "mleak.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/launch.h"
#include "record/ptrace/tracer_state.h"

#define LOOK_MS 100 /* should a SIGCHLD have come before it could be seen */

/* The stopped @pid goes on, with signal @sig if that is not 0.  It may have been killed meanwhile:
 * then there is nothing to do. */
static void go_on(struct tracer *t, pid_t pid, int sig)
{
	ptrace((enum __ptrace_request)to_start_request(&t->to_start, pid), pid, NULL,
	       (void *)(intptr_t)sig);
}

/* Tell the recorder of @pid, which is held until it answers. */
static void tell(struct tracer *t, enum tracer_what what, pid_t pid)
{
	bool told;

	pthread_mutex_lock(&t->lock);
	told = push_event(&t->events, (struct tracer_event){what, pid});
	pthread_mutex_unlock(&t->lock);
	if (told)
		ring_bell(t->events_fd);
	else
		go_on(t, pid, 0);
}

/* Is @tid a process's main thread? */
static bool is_process(pid_t tid)
{
	return !syscall(SYS_tgkill, tid, tid, 0) || errno == EPERM;
}

static bool stops_job(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* It is on its way to its start, or was so long on it that this was given up. */
static void on_system_call(struct tracer *t, pid_t pid)
{
	if (to_start_is_there(&t->to_start, pid))
		tell(t, TRACER_START, pid);
	else
		go_on(t, pid, 0);
}

static void on_stop(struct tracer *t, pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!event && sig == (SIGTRAP | 0x80))
		on_system_call(t, pid);
	else if (!event)
		go_on(t, pid, sig); /* a signal is about to be delivered: let it be */
	else if (event == PTRACE_EVENT_STOP && stops_job(sig))
		ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* it stays stopped, as it should */
	else if (event == PTRACE_EVENT_STOP && t->what & SEIZE_CHILDREN && is_process(pid))
		tell(t, TRACER_CHILD, pid);
	else if (event == PTRACE_EVENT_EXIT && is_process(pid))
		tell(t, TRACER_EXIT, pid);
	else if (event == PTRACE_EVENT_EXEC)
		tell(t, TRACER_EXEC, pid);
	else
		go_on(t, pid, 0);
}

static void on_wait(void *ctx, pid_t pid, int status)
{
	struct tracer *t = ctx;

	if (WIFSTOPPED(status)) {
		on_stop(t, pid, status);
		return;
	}
	to_start_remove(&t->to_start, pid);
	if (pid == t->pid) {
		pthread_mutex_lock(&t->lock);
		t->waited = true;
		t->status = status;
		pthread_mutex_unlock(&t->lock);
	}
}

static void take_stops(struct tracer *t)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL | __WNOTHREAD)) > 0)
		on_wait(t, pid, status);
}

/* Do what tracer_attach() waits for. */
static void attach(struct tracer *t)
{
	pid_t pid;
	int result;

	pthread_mutex_lock(&t->lock);
	pid = t->asked;
	pthread_mutex_unlock(&t->lock);
	if (!pid)
		return;
	result = seize_running(pid, t->what, on_wait, t);
	pthread_mutex_lock(&t->lock);
	t->result = result;
	t->asked = 0;
	pthread_cond_signal(&t->started);
	pthread_mutex_unlock(&t->lock);
}

/* Returns the state that is requested. */
static enum state take_orders(struct tracer *t)
{
	struct tracer_list orders;
	enum state state;

	silence(t->orders_fd);
	pthread_mutex_lock(&t->lock);
	orders = t->orders;
	t->orders = (struct tracer_list){0};
	state = t->state;
	/* What it traces it goes on to trace, and so what that starts. */
	if (t->unprivileged) {
		sandbox_enter(-1);
		privileges_keep_in_thread(0);
	}
	t->unprivileged = false;
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < orders.nr; i++) {
		if (orders.v[i].what == TRACER_START)
			to_start_add(&t->to_start, orders.v[i].pid);
		else
			to_start_remove(&t->to_start, orders.v[i].pid);
		go_on(t, orders.v[i].pid, 0);
	}
	free(orders.v);
	return state;
}

static void run(struct tracer *t)
{
	struct signalfd_siginfo info;
	enum state state = STATE_HELD;

	while (state != STATE_OVER) {
		struct pollfd fds[] = {{.fd = t->orders_fd, .events = POLLIN},
				       {.fd = t->signal_fd, .events = POLLIN}};
		enum state before = state;

		poll(fds, 2, LOOK_MS);
		state = take_orders(t);
		attach(t);
		if (t->argv && before == STATE_HELD && state == STATE_RUNS)
			seize_started(t->pid, t->what);
		if (state != STATE_RUNS)
			continue;
		while (read(t->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			;
		take_stops(t);
	}
}

/* With the thread's end the kernel sets all free that it traces. */
static void *trace(void *arg)
{
	struct tracer *t = arg;
	sigset_t all, child;
	pid_t pid = 0;
	int ended = 0, result = 0;
	bool runs;

	if (t->argv)
		result = launch_start(&t->launch, t->argv, &pid, &ended);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	t->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	pthread_mutex_lock(&t->lock);
	t->pid = pid;
	t->ended = ended;
	t->result = result;
	t->state = result ? STATE_OVER : t->argv ? STATE_HELD : STATE_RUNS;
	pthread_cond_signal(&t->started);
	pthread_mutex_unlock(&t->lock);
	if (result)
		return NULL;
	/* what was started has its own already */
	privileges_keep_in_thread(1u << CAP_SYS_PTRACE | 1u << CAP_KILL);
	run(t);
	pthread_mutex_lock(&t->lock);
	runs = t->released;
	pthread_mutex_unlock(&t->lock);
	if (!runs && pid)
		launch_abort(pid);
	return NULL;
}

static struct tracer *new_tracer(char **argv, const struct launch *launch, unsigned int what)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->argv = argv;
	t->what = what;
	if (argv)
		t->launch = *launch;
	t->signal_fd = -1;
	t->events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->orders_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->started, NULL);
	return t;
}

/* Begin, and wait until launch_start() has returned, if there is a command.  NULL: no room. */
static struct tracer *start(char **argv, const struct launch *launch, unsigned int what)
{
	struct tracer *t = new_tracer(argv, launch, what);

	if (!t || t->events_fd < 0 || t->orders_fd < 0 ||
	    pthread_create(&t->thread, NULL, trace, t)) {
		tracer_free(t);
		return NULL;
	}
	pthread_mutex_lock(&t->lock);
	while (t->state == STATE_STARTING)
		pthread_cond_wait(&t->started, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return t;
}

int tracer_start(struct tracer **out, char **argv, unsigned int what, pid_t *pid, int *ended)
{
	struct launch launch;
	/* Not in the thread that traces: that ends before the command may, which would be told so
	 * by PR_SET_PDEATHSIG. */
	int result = launch_fork(&launch, argv);
	struct tracer *t = result ? NULL : start(argv, &launch, what);

	*out = NULL;
	if (result)
		return result;
	if (!t) {
		launch_give_up(&launch);
		log_error("cannot start '%s': there is no room for another thread", argv[0]);
		return EXIT_RECORD_FAILED;
	}
	result = t->result;
	*pid = t->pid;
	*ended = t->ended;
	if (result) {
		pthread_join(t->thread, NULL);
		tracer_free(t);
	} else {
		*out = t;
	}
	return result;
}

/* Have the thread of @t trace @pid. */
static int attach_to(struct tracer *t, pid_t pid)
{
	int err;

	if (!t)
		return -ENOMEM;
	pthread_mutex_lock(&t->lock);
	t->asked = pid;
	ring_bell(t->orders_fd);
	while (t->asked)
		pthread_cond_wait(&t->started, &t->lock);
	err = t->result;
	pthread_mutex_unlock(&t->lock);
	return err;
}

int tracer_attach(struct tracer **t, pid_t pid)
{
	if (!*t)
		*t = start(NULL, NULL, SEIZE_CHILDREN);
	return attach_to(*t, pid);
}

int tracer_attach_command(struct tracer **out, pid_t pid)
{
	struct tracer *t = start(NULL, NULL, SEIZE_EXIT);
	int err, status;

	*out = NULL;
	/* its end is seen by the thread, and by nobody else */
	if (t) {
		pthread_mutex_lock(&t->lock);
		t->pid = pid;
		pthread_mutex_unlock(&t->lock);
	}
	err = attach_to(t, pid);
	if (!err) {
		*out = t;
	} else if (t) {
		tracer_stop(t, &status);
		tracer_free(t);
	}
	return err;
}
