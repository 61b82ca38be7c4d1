/* alarm.c - see alarm.h */
#include "record/ptrace/alarm.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND 1000000000u

#ifndef sigev_notify_thread_id /* of Linux, and not in all headers of the C library */
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void ignore(int sig)
{
	(void)sig;
}

/* Let @sig come to the calling thread, and interrupt what it waits in. */
static int let_come(int sig)
{
	const struct sigaction action = {.sa_handler = ignore}; /* without SA_RESTART */
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigaction(sig, &action, NULL))
		return -errno;
	return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int alarm_begin(timer_t *alarm, uint64_t at_ns, uint32_t again_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	const struct itimerspec when = {
		.it_value = {(time_t)(at_ns / SECOND), (long)(at_ns % SECOND)},
		.it_interval = {0, again_ns},
	};
	int err = let_come(SIGRTMIN);

	if (err)
		return err;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, alarm))
		return -errno;
	if (timer_settime(*alarm, TIMER_ABSTIME, &when, NULL)) {
		err = -errno;
		timer_delete(*alarm);
	}
	return err;
}

void alarm_end(timer_t alarm)
{
	timer_delete(alarm);
}
