/* awake.c - see awake.h */
#include "record/ptrace/awake.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STACK 65536

struct awake {
	_Atomic int over;
	_Atomic unsigned int users; /* the last one frees it */
};

static void leave(struct awake *a)
{
	if (--a->users == 0)
		free(a);
}

static void *stay(void *arg)
{
	const struct sched_param none = {0};
	struct awake *a = arg;

	/* with any other priority it would be in the way of those for whom it is done */
	if (!sched_setscheduler(0, SCHED_IDLE, &none))
		while (!a->over)
			;
	leave(a);
	return NULL;
}

struct awake *awake_begin(unsigned int nr)
{
	struct awake *a = calloc(1, sizeof(*a));
	pthread_attr_t attr;
	sigset_t all, mask;

	if (!a || pthread_attr_init(&attr)) {
		free(a);
		return NULL;
	}
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	/* one that gets a processor late is to take no signal then */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	a->users = 1;
	for (unsigned int i = 0; i < nr; i++) {
		pthread_t thread;

		a->users++;
		if (pthread_create(&thread, &attr, stay, a))
			a->users--;
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_attr_destroy(&attr);
	return a;
}

void awake_end(struct awake *a)
{
	if (!a)
		return;
	a->over = 1;
	leave(a);
}
