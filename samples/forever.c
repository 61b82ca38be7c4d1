/* forever.c - a server that leaks for as long as it runs, for tests that attach to it
 *
 * Usage: forever [MILLISECONDS between two rounds of a thread, default 10]
 * SIGUSR1 prints what was leaked so far, SIGUSR2 pauses or resumes, SIGTERM ends with the answer.
 * While it is paused no thread is inside a round, so that no block is leaked but not yet counted.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "sample.h"

/* Rounds hold the gate for reading, the main thread for writing to keep them out. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static struct timespec interval;

static FRAME void leak_here(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

FRAME void noise(size_t bytes)
{
	void *block = malloc(bytes);
	void *items = calloc(3, LEAK_BYTES);

	keep(block);
	keep(items);
	items = realloc(items, 5 * bytes);
	keep(items);
	free(block);
	free(items);
	AFTER_CALL();
}

static FRAME void handle_request(struct leak_sum *sum, int round)
{
	noise(100 + round % 1000);
	leak_here(sum);
	noise(LEAK_BYTES);
	AFTER_CALL();
}

static void serve(struct leak_sum *sum)
{
	for (int round = 0;; round = (round + 1) % 1000) {
		pthread_rwlock_rdlock(&gate);
		handle_request(sum, round);
		pthread_rwlock_unlock(&gate);
		if (interval.tv_sec || interval.tv_nsec)
			nanosleep(&interval, NULL);
	}
}

FRAME void *serve_readers(void *sum)
{
	serve(sum);
	AFTER_CALL();
	return NULL;
}

static FRAME void *serve_writers(void *sum)
{
	serve(sum);
	AFTER_CALL();
	return NULL;
}

static void print_count(const struct leak_sum *readers, const struct leak_sum *writers)
{
	say("count: blocks=%lu bytes=%lu\n", readers->blocks + writers->blocks,
	    readers->bytes + writers->bytes);
}

/* Obey signals until SIGTERM; the rounds are kept out when this returns. */
static void obey(const sigset_t *signals, const struct leak_sum *readers,
		 const struct leak_sum *writers)
{
	int paused = 0;
	int signal;

	while (sigwait(signals, &signal) == 0) {
		if (!paused)
			pthread_rwlock_wrlock(&gate);
		if (signal == SIGTERM)
			return;
		if (signal == SIGUSR1)
			print_count(readers, writers);
		if (signal == SIGUSR2) {
			paused = !paused;
			say(paused ? "paused\n" : "running\n");
		}
		if (!paused)
			pthread_rwlock_unlock(&gate);
	}
}

int main(int argc, char **argv)
{
	long interval_ms = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
	struct leak_sum readers = {0}, writers = {0};
	pthread_t threads[2];
	sigset_t signals;

	interval.tv_sec = interval_ms / 1000;
	interval.tv_nsec = interval_ms % 1000 * 1000000;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (pthread_create(&threads[0], NULL, serve_readers, &readers) ||
	    pthread_create(&threads[1], NULL, serve_writers, &writers))
		return 1;
	say("ready\n");
	obey(&signals, &readers, &writers);
	answer(&readers, "serve_readers;*;handle_request;leak_here");
	answer(&writers, "serve_writers;*;handle_request;leak_here");
	return 0;
}
