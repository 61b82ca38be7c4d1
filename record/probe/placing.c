/* placing.c - see placing.h */
#include "record/probe/placing.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define MAX_THREADS 64	  /* that wait side by side */
#define STACK	    65536 /* bytes, of each */

struct placing_job {
	struct helper_link link;
	uint64_t offset, cookie;
	struct link_set *set;
	int fd; /* or -errno */
};

/* What one thread attaches: each @step-th from the @first on. */
struct share {
	const struct placing *placing;
	size_t first, step;
};

int placing_add(struct placing *p, struct link_set *set, const struct helper_link *l)
{
	if (p->nr == p->room) {
		size_t room = p->room ? p->room * 2 : 32;
		struct placing_job *v = realloc(p->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		p->v = v;
		p->room = room;
	}
	p->v[p->nr++] = (struct placing_job){
		.link = *l, .offset = l->offsets[0], .cookie = l->cookies[0], .set = set};
	return 0;
}

static void *place_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->placing->nr; i += share->step) {
		struct placing_job *job = &share->placing->v[i];

		job->link.offsets = &job->offset;
		job->link.cookies = &job->cookie;
		job->fd = links_make(&job->link);
	}
	return NULL;
}

static void place_all(const struct placing *p)
{
	size_t nr = p->nr < MAX_THREADS ? p->nr : MAX_THREADS;
	struct share shares[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	bool started[MAX_THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (size_t i = 0; i < nr; i++) {
		shares[i] = (struct share){.placing = p, .first = i, .step = nr};
		started[i] = !pthread_create(&threads[i], &attr, place_share, &shares[i]);
	}
	for (size_t i = 0; i < nr; i++)
		if (!started[i])
			place_share(&shares[i]);
	for (size_t i = 0; i < nr; i++)
		if (started[i])
			pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
}

int placing_run(struct placing *p)
{
	int err = 0;

	place_all(p);
	for (size_t i = 0; i < p->nr; i++) {
		int fd = p->v[i].fd, kept = fd < 0 ? fd : links_keep(p->v[i].set, fd);

		if (!err)
			err = kept;
	}
	free(p->v);
	*p = (struct placing){0};
	return err;
}
