/* ring_making.c - see ring_making.h */
#include "record/probe/ring_making.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct ring_making {
	struct ring_map maps[RING_PARTS];
	int err; /* that they could not be made */
	sem_t made;
	struct ring *ring;
	int open_err; /* that they could not be mapped */
	pthread_t thread;
	bool started;
};

static int make_map(struct ring_map *map, const char *name)
{
	map->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, name, 0, 0, (uint32_t)map->size, NULL);
	return map->fd < 0 ? map->fd : 0;
}

static void *make(void *arg)
{
	struct ring_making *m = arg;

	m->err = make_map(&m->maps[0], "front");
	if (!m->err)
		m->err = make_map(&m->maps[1], "events");
	sem_post(&m->made);
	m->open_err = m->err ? m->err : ring_open(m->maps, NULL, NULL, &m->ring);
	return NULL;
}

static void end_thread(struct ring_making *m)
{
	if (m->started)
		pthread_join(m->thread, NULL);
	m->started = false;
}

int ring_making_begin(struct ring_making **out, const uint32_t sizes[RING_PARTS])
{
	struct ring_making *m = calloc(1, sizeof(*m));

	*out = m;
	if (!m)
		return -ENOMEM;
	for (int i = 0; i < RING_PARTS; i++)
		m->maps[i] = (struct ring_map){-1, sizes[i]};
	sem_init(&m->made, 0, 0);
	m->started = !pthread_create(&m->thread, NULL, make, m);
	if (!m->started)
		make(m);
	return 0;
}

int ring_making_fds(struct ring_making *m, int fds[RING_PARTS])
{
	while (sem_wait(&m->made)) /* by a signal */
		;
	sem_post(&m->made);
	for (int i = 0; i < RING_PARTS; i++)
		fds[i] = m->maps[i].fd;
	return m->err;
}

int ring_making_end(struct ring_making *m, struct ring **ring)
{
	end_thread(m);
	*ring = m->ring;
	m->ring = NULL;
	return m->open_err;
}

void ring_making_free(struct ring_making *m)
{
	if (!m)
		return;
	end_thread(m);
	ring_close(m->ring);
	for (int i = 0; i < RING_PARTS; i++)
		if (m->maps[i].fd >= 0)
			close(m->maps[i].fd);
	sem_destroy(&m->made);
	free(m);
}
