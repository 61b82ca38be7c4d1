/* threads.c - four threads: one leaks, one frees what another allocated, one is in balance */
#include <pthread.h>

#include "sample.h"

enum { HANDED_OVER = 1009, ROUNDS = 500 };

/* One block on its way from the thread that allocates it to the one that frees it. */
struct mailbox {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void *block; /* NULL when empty */
};

static struct mailbox mailbox = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

static void mailbox_put(struct mailbox *box, void *block)
{
	pthread_mutex_lock(&box->lock);
	while (box->block)
		pthread_cond_wait(&box->changed, &box->lock);
	box->block = block;
	pthread_cond_signal(&box->changed);
	pthread_mutex_unlock(&box->lock);
}

static void *mailbox_take(struct mailbox *box)
{
	void *block;

	pthread_mutex_lock(&box->lock);
	while (!box->block)
		pthread_cond_wait(&box->changed, &box->lock);
	block = box->block;
	box->block = NULL;
	pthread_cond_signal(&box->changed);
	pthread_mutex_unlock(&box->lock);
	return block;
}

static FRAME void leak_here(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

FRAME void balance(size_t bytes)
{
	void *block = malloc(bytes);

	keep(block);
	free(block);
	AFTER_CALL();
}

FRAME void work(struct leak_sum *sum)
{
	for (int i = 0; i < LEAK_BLOCKS; i++) {
		balance(LEAK_BYTES);
		leak_here(sum);
	}
	AFTER_CALL();
}

static FRAME void *leaking_thread(void *sum)
{
	work(sum);
	AFTER_CALL();
	return NULL;
}

/* The thread that looks like the culprit to whoever counts by thread: it frees nothing. */
static FRAME void *giving_thread(void *unused)
{
	for (int i = 0; i < HANDED_OVER; i++)
		mailbox_put(&mailbox, malloc(LEAK_BYTES));
	return unused;
}

static FRAME void *freeing_thread(void *unused)
{
	for (int i = 0; i < HANDED_OVER; i++)
		free(mailbox_take(&mailbox));
	return unused;
}

static FRAME void *balanced_thread(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		balance(LEAK_BYTES + i);
	return unused;
}

int main(void)
{
	void *(*const starts[])(void *) = {
		leaking_thread,
		giving_thread,
		freeing_thread,
		balanced_thread,
	};
	enum { NR_THREADS = sizeof(starts) / sizeof(starts[0]) };
	pthread_t threads[NR_THREADS];
	struct leak_sum sum = {0};

	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, starts[i], &sum))
			return 1;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	answer(&sum, "leaking_thread;work;leak_here");
	return 0;
}
