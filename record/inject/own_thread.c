/* own_thread.c - see own_thread.h */
#include "record/inject/own_thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/base/proc.h"

#define WAIT_NS 20000

struct work {
	int (*what)(void *arg);
	void *arg;
	pid_t tid;
	int result;
};

static void *run(void *arg)
{
	struct work *w = arg;

	w->tid = (pid_t)syscall(SYS_gettid);
	w->result = w->what(w->arg);
	return NULL;
}

int inject_in_thread(int (*what)(void *arg), void *arg)
{
	struct work w = {.what = what, .arg = arg};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, &w))
		return what(arg);
	pthread_join(thread, NULL);
	/* that comes earlier than the moment from which it traces none any more */
	while (proc_has_thread(getpid(), w.tid))
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	return w.result;
}
