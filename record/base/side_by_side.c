/* side_by_side.c - see side_by_side.h */
#include "record/base/side_by_side.h"

#include <pthread.h>
#include <stdbool.h>

/* What one thread does: each @step-th from the @first on. */
struct share {
	void (*work)(void *ctx, size_t i);
	void *ctx;
	size_t first, step, nr;
	pthread_t thread;
	bool started;
};

static void *do_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->nr; i += share->step)
		share->work(share->ctx, i);
	return NULL;
}

void side_by_side(size_t nr, size_t threads, size_t stack, void (*work)(void *ctx, size_t i),
		  void *ctx)
{
	struct share shares[SIDE_BY_SIDE_MOST];
	size_t nr_shares = nr < threads ? nr : threads;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	for (size_t i = 0; i < nr_shares; i++) {
		shares[i] = (struct share){
			.work = work, .ctx = ctx, .first = i, .step = nr_shares, .nr = nr};
		shares[i].started = !pthread_create(&shares[i].thread, &attr, do_share, &shares[i]);
	}
	for (size_t i = 0; i < nr_shares; i++)
		if (!shares[i].started)
			do_share(&shares[i]);
	for (size_t i = 0; i < nr_shares; i++)
		if (shares[i].started)
			pthread_join(shares[i].thread, NULL);
	pthread_attr_destroy(&attr);
}
