/* threads_child.h - a child with threads, to be stopped, traced or read by a test */
#ifndef THREADS_CHILD_H
#define THREADS_CHILD_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

struct child_threads {
	void (*live)(int i); /* what the @i-th does; it does not return */
	_Atomic int ready;
};

static struct child_threads child_threads;

static void *be_child_thread(void *arg)
{
	child_threads.ready++;
	child_threads.live((int)(intptr_t)arg);
	return NULL;
}

/* A process of @nr threads that all do @live; the first is its main thread, of number 0.  It ends
 * with the calling thread at the latest. */
static pid_t start_threads_child(int nr, void (*live)(int i))
{
	int pipes[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	child_threads.live = live;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 1; i < nr; i++)
			pthread_create(&thread, NULL, be_child_thread, (void *)(intptr_t)i);
		while (child_threads.ready < nr - 1)
			usleep(100);
		if (write(pipes[1], "r", 1) != 1)
			_exit(1);
		live(0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

#endif
