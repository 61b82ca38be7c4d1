/* closing.c - see closing.h */
#include "record/closing.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 32 /* that wait side by side */

struct closing_one {
	struct bpf_link *link;
	int fd;
};

static void close_one(const struct closing_one *one)
{
	if (one->fd >= 0)
		close(one->fd);
	else
		bpf_link__destroy(one->link);
}

void closing_add(struct closing *c, int fd, struct bpf_link *link)
{
	struct closing_one one = {.link = link, .fd = fd};

	if (c->nr == c->room) {
		size_t room = c->room ? c->room * 2 : 8;
		struct closing_one *v = realloc(c->v, room * sizeof(*v));

		if (!v) {
			close_one(&one);
			return;
		}
		c->v = v;
		c->room = room;
	}
	c->v[c->nr++] = one;
}

/* What one thread closes: each MAX_THREADS-th from the @first on. */
struct share {
	const struct closing *all;
	size_t first;
};

static void *close_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->all->nr; i += MAX_THREADS)
		close_one(&share->all->v[i]);
	return NULL;
}

static void close_all(struct closing *c)
{
	struct share shares[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	bool started[MAX_THREADS];

	for (size_t i = 0; i < MAX_THREADS && i < c->nr; i++) {
		shares[i] = (struct share){.all = c, .first = i};
		started[i] = !pthread_create(&threads[i], NULL, close_share, &shares[i]);
		if (!started[i])
			close_share(&shares[i]);
	}
	for (size_t i = 0; i < MAX_THREADS && i < c->nr; i++)
		if (started[i])
			pthread_join(threads[i], NULL);
	free(c->v);
}

static void *close_and_free(void *arg)
{
	struct closing *own = arg;

	for (size_t i = 0; i < own->nr; i++)
		close_one(&own->v[i]);
	free(own->v);
	free(own);
	return NULL;
}

void closing_run(struct closing *c, bool wait)
{
	struct closing *own = wait || !c->nr ? NULL : malloc(sizeof(*own));
	pthread_t thread;

	if (own) {
		*own = *c;
		if (pthread_create(&thread, NULL, close_and_free, own))
			close_and_free(own);
		else
			pthread_detach(thread);
	} else {
		close_all(c);
	}
	memset(c, 0, sizeof(*c));
}
