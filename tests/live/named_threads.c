/* named_threads.c - threads with names that allocate, and count it
 *
 * usage: named_threads
 *
 * At the begin there are "before" and "waits".  Then on each byte of stdin: 'b' lets "before"
 * allocate 23 blocks of 47 bytes and end; 'n' starts "new", which allocates 29 blocks of 53 and
 * ends; 'f' forks a child that calls itself "child" and allocates 31 blocks of 59; 'w' lets "waits"
 * allocate 37 blocks of 61.  Prints "NAME TID BLOCKS BYTES" after each.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../say.h"

static pthread_barrier_t before_begins, before_went, waits_begins, waits_went;

static void allocate(const char *name, int blocks, int size)
{
	for (int i = 0; i < blocks; i++) {
		void *block = malloc((size_t)size);

		__asm__ volatile("" : : "r"(block) : "memory");
	}
	say("%s %d %d %d\n", name, (int)syscall(SYS_gettid), blocks, blocks * size);
}

static void *run_before(void *arg)
{
	prctl(PR_SET_NAME, "before");
	pthread_barrier_wait(&before_went);
	pthread_barrier_wait(&before_begins);
	allocate("before", 23, 47);
	return arg;
}

static void *run_waits(void *arg)
{
	prctl(PR_SET_NAME, "waits");
	pthread_barrier_wait(&waits_went);
	while (1) {
		pthread_barrier_wait(&waits_begins);
		allocate("waits", 37, 61);
		pthread_barrier_wait(&waits_went);
	}
	return arg;
}

static void *run_new(void *arg)
{
	prctl(PR_SET_NAME, "new");
	allocate("new", 29, 53);
	return arg;
}

static void run_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "child");
		allocate("child", 31, 59);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	pthread_t before, waits, fresh;
	char c;

	pthread_barrier_init(&before_begins, NULL, 2);
	pthread_barrier_init(&before_went, NULL, 2);
	pthread_barrier_init(&waits_begins, NULL, 2);
	pthread_barrier_init(&waits_went, NULL, 2);
	pthread_create(&before, NULL, run_before, NULL);
	pthread_create(&waits, NULL, run_waits, NULL);
	pthread_barrier_wait(&before_went);
	pthread_barrier_wait(&waits_went);
	say("ready\n");
	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (c == 'b') {
			pthread_barrier_wait(&before_begins);
			pthread_join(before, NULL);
		} else if (c == 'n') {
			pthread_create(&fresh, NULL, run_new, NULL);
			pthread_join(fresh, NULL);
		} else if (c == 'f') {
			run_child();
		} else if (c == 'w') {
			pthread_barrier_wait(&waits_begins);
			pthread_barrier_wait(&waits_went);
		}
	}
	return 0;
}
