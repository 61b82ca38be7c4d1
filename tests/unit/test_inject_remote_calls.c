/* test_inject_remote_calls.c - system calls go on in which a thread was stopped for remote calls */
#include "tests/unit/inject_remote_world.h"

#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <time.h>

#define CALLS 200
#define STOPS 10

/* The calls that have an end of their own come to it after this time, and are stopped before.  Had
 * one begun anew, it would have taken longer; a loaded machine takes its time, too. */
#define WAIT_MS	 3000
#define BEGIN_MS 1500
#define MOST_MS	 (WAIT_MS + BEGIN_MS - 100)

static int wait_ms = WAIT_MS;
static int pipe_ends[2];

static struct timespec wait_time(void)
{
	return (struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000};
}

static int by_nanosleep(struct told *told)
{
	const struct timespec time = wait_time();

	(void)told;
	return nanosleep(&time, NULL);
}

static int by_clock_nanosleep(struct told *told)
{
	const struct timespec time = wait_time();

	(void)told;
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	return errno ? -1 : 0;
}

static int until_clock_nanosleep(struct told *told)
{
	struct timespec until;

	(void)told;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno ? -1 : 0;
}

static int by_poll(struct told *told)
{
	struct pollfd fd = {.fd = pipe_ends[0], .events = POLLIN};

	(void)told;
	return poll(&fd, 1, wait_ms);
}

static int by_ppoll(struct told *told)
{
	struct pollfd fd = {.fd = pipe_ends[0], .events = POLLIN};
	const struct timespec time = wait_time();
	sigset_t all;

	(void)told;
	sigfillset(&all);
	return ppoll(&fd, 1, &time, &all);
}

static int by_pselect(struct told *told)
{
	const struct timespec time = wait_time();
	sigset_t none;

	(void)told;
	sigemptyset(&none);
	return pselect(0, NULL, NULL, NULL, &time, &none);
}

static int wait_events(int ms, const sigset_t *mask)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0), n;

	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event);
	n = mask ? epoll_pwait(epoll, &event, 1, ms, mask) : epoll_wait(epoll, &event, 1, ms);
	close(epoll);
	return n;
}

static int by_epoll_wait(struct told *told)
{
	(void)told;
	return wait_events(wait_ms, NULL);
}

static int by_epoll_pwait(struct told *told)
{
	sigset_t all;

	(void)told;
	sigfillset(&all);
	return wait_events(wait_ms, &all);
}

static int by_futex(struct told *told)
{
	const struct timespec time = wait_time();
	int n = (int)syscall(SYS_futex, &told->aux, FUTEX_WAIT, 0, &time, NULL, 0);

	return n < 0 && errno == ETIMEDOUT ? 0 : -1;
}

/* What ends by itself gets there when it would have: with no error, neither early nor late. */
static int (*waiting)(struct told *told);

static void run_waiting(struct told *told)
{
	uint64_t begin_ns;

	if (pipe(pipe_ends))
		_exit(2);
	begin_ns = clock_now_ns();
	told->ready = 1;
	told->result = waiting(told);
	told->error = told->result < 0 ? errno : 0;
	told->took_ns = clock_now_ns() - begin_ns;
	while (!told->over)
		usleep(1000);
}

static void call_often(pid_t pid, int stops)
{
	struct there r;

	/* each stop is a chance to go wrong, too */
	for (int i = 0; i < stops; i++) {
		begin_there(&r, pid);
		for (int j = 0; j < CALLS / STOPS; j++)
			assert_int_equal(call_there(&r, SYS_getpid, 0, 0), pid);
		end_there(&r);
	}
}

static void what_ends_by_itself(void **state)
{
	int (*const calls[])(struct told *) = {
		by_nanosleep, by_clock_nanosleep, until_clock_nanosleep, by_poll,  by_ppoll,
		by_pselect,   by_epoll_wait,	  by_epoll_pwait,	 by_futex,
	};
	struct target_process t[sizeof(calls) / sizeof(*calls)];
	const size_t nr = sizeof(calls) / sizeof(*calls);

	(void)state;
	for (size_t i = 0; i < nr; i++) {
		waiting = calls[i];
		start_target(&t[i], run_waiting);
	}
	for (size_t i = 0; i < nr; i++)
		wait_ready(&t[i]);
	usleep(BEGIN_MS * 1000);
	for (size_t i = 0; i < nr; i++)
		call_often(t[i].pid, STOPS);
	for (size_t i = 0; i < nr; i++) {
		while (!t[i].told->took_ns)
			usleep(1000);
		assert_int_equal(t[i].told->error, 0);
		assert_int_equal(t[i].told->result, 0);
		assert_in_range(t[i].told->took_ns, (WAIT_MS - 2) * MS, MOST_MS * MS);
		end_target(&t[i]);
	}
}

static int sem;

static int until_read(struct told *told)
{
	char byte;

	(void)told;
	return read(pipe_ends[0], &byte, 1) == 1 ? 0 : -1;
}

static int until_event(struct told *told)
{
	(void)told;
	return wait_events(-1, NULL) == 1 ? 0 : -1;
}

static int until_poll(struct told *told)
{
	struct pollfd fd = {.fd = pipe_ends[0], .events = POLLIN};

	(void)told;
	return poll(&fd, 1, -1) == 1 ? 0 : -1;
}

static int until_semop(struct told *told)
{
	struct sembuf wanted = {.sem_op = -1};

	(void)told;
	return semop(sem, &wanted, 1);
}

static int until_child_ends(struct told *told)
{
	pid_t child = fork();
	char byte;

	(void)told;
	if (!child)
		_exit(read(pipe_ends[0], &byte, 1) == 1 ? 0 : 1);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static int until_futex(struct told *told)
{
	return (int)syscall(SYS_futex, &told->aux, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static int until_futex_bitset(struct told *told)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 100;
	return (int)syscall(SYS_futex, &told->aux, FUTEX_WAIT_BITSET, 0, &until, NULL, 1);
}

static int until_signal(struct told *told)
{
	sigset_t wanted;

	(void)told;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR2);
	return sigwaitinfo(&wanted, NULL) == SIGUSR2 ? 0 : -1;
}

static void run_until(struct told *told)
{
	sigset_t usr2;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	told->ready = 1;
	told->result = waiting(told);
	told->error = told->result < 0 ? errno : 0;
	told->rounds = 1;
}

static void wake(const struct target_process *t)
{
	struct sembuf give = {.sem_op = 1};

	assert_int_equal(write(pipe_ends[1], "x", 1), 1);
	assert_int_equal(semop(sem, &give, 1), 0);
	kill(t->pid, SIGUSR2);
	t->told->aux = 1;
	syscall(SYS_futex, &t->told->aux, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* What waits for something waits on, however often it is stopped, and then gets it. */
static void assert_waits_on(int (*call)(struct told *told))
{
	struct target_process t;

	assert_int_equal(pipe(pipe_ends), 0);
	sem = semget(IPC_PRIVATE, 1, 0600);
	assert_true(sem >= 0);
	waiting = call;
	start_target(&t, run_until);
	wait_ready(&t);
	wait_state(t.pid, 'S');
	call_often(t.pid, STOPS);
	usleep(20000);
	assert_int_equal(t.told->rounds, 0);
	wake(&t);
	wait_end(&t);
	assert_int_equal(t.told->error, 0);
	assert_int_equal(t.told->result, 0);
	semctl(sem, 0, IPC_RMID);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	release_target(&t);
}

static void what_waits_for_something(void **state)
{
	int (*const calls[])(struct told *) = {
		until_read,	  until_event, until_poll,	   until_semop,
		until_child_ends, until_futex, until_futex_bitset, until_signal,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		assert_waits_on(calls[i]);
}

static struct told *told_of_handler;

static void count_signal(int sig)
{
	(void)sig;
	told_of_handler->handled++;
}

static int by_pause(struct told *told)
{
	(void)told;
	return pause();
}

static int by_sigsuspend(struct told *told)
{
	sigset_t none;

	(void)told;
	sigemptyset(&none);
	return sigsuspend(&none);
}

/* Blocks a signal only while it waits. */
static int by_blocking_sigsuspend(struct told *told)
{
	sigset_t usr2;

	(void)told;
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	return sigsuspend(&usr2);
}

static int blocked_signal; /* while it does not wait; 0: none */

static void run_interrupted(struct told *told)
{
	struct sigaction action = {.sa_handler = count_signal};
	sigset_t blocked, after;

	told_of_handler = told;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigemptyset(&blocked);
	if (blocked_signal)
		sigaddset(&blocked, blocked_signal);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	told->ready = 1;
	told->result = waiting(told);
	told->error = errno;
	told->rounds = 1;
	/* what it had blocked before is blocked again */
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		told->wrong += sigismember(&after, sig) != sigismember(&blocked, sig);
}

static void start_interrupted(struct target_process *t, int (*call)(struct told *told), int blocked)
{
	assert_int_equal(pipe(pipe_ends), 0);
	waiting = call;
	blocked_signal = blocked;
	start_target(t, run_interrupted);
	wait_ready(t);
	wait_state(t->pid, 'S');
	call_often(t->pid, 2);
	wait_state(t->pid, 'S');
	assert_int_equal(t->told->rounds, 0);
}

static void assert_interrupted(struct target_process *t, unsigned int signals)
{
	wait_end(t);
	assert_int_equal(t->told->result, -1);
	assert_int_equal(t->told->error, EINTR);
	assert_int_equal(t->told->handled, signals);
	assert_int_equal(t->told->wrong, 0);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	release_target(t);
}

/* A signal that comes while a thread is held interrupts its call as it would have. */
static void a_signal_ends_a_call(void **state)
{
	int (*const calls[])(struct told *) = {
		by_pause,      by_sigsuspend, by_nanosleep, until_read, until_event,
		by_epoll_wait, by_poll,	      until_futex,  by_pselect,
	};
	struct target_process t;
	struct there r;

	(void)state;
	wait_ms = 60000;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		/* that one is let in only by the call */
		const int blocked = calls[i] == by_sigsuspend || calls[i] == by_pselect;

		start_interrupted(&t, calls[i], blocked ? SIGUSR1 : 0);
		begin_there(&r, t.pid);
		call_there(&r, SYS_getpid, 0, 0);
		kill(t.pid, SIGUSR1);
		call_there(&r, SYS_getpid, 0, 0);
		usleep(1000);
		assert_int_equal(t.told->handled, 0);
		end_there(&r);
		assert_interrupted(&t, 1);
	}
}

/* One that the call alone had blocked is not let in any earlier. */
static void a_blocked_signal_does_not(void **state)
{
	struct target_process t;
	struct there r;

	(void)state;
	start_interrupted(&t, by_blocking_sigsuspend, 0);
	begin_there(&r, t.pid);
	kill(t.pid, SIGUSR2);
	call_there(&r, SYS_getpid, 0, 0);
	end_there(&r);
	usleep(20000);
	assert_int_equal(t.told->rounds, 0);
	kill(t.pid, SIGUSR1);
	assert_interrupted(&t, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ends_by_itself),
		cmocka_unit_test(what_waits_for_something),
		cmocka_unit_test(a_signal_ends_a_call),
		cmocka_unit_test(a_blocked_signal_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
