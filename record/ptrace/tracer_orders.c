/* tracer_orders.c - the recorder's end of a tracer: what it asks for, and what it is told */
#include <stdlib.h>

#include "record/ptrace/tracer_state.h"

static void ask_for(struct tracer *t, enum state state)
{
	pthread_mutex_lock(&t->lock);
	t->released |= state == STATE_RUNS;
	t->state = state;
	pthread_mutex_unlock(&t->lock);
	ring_bell(t->orders_fd);
}

void tracer_give_up_privileges(struct tracer *t)
{
	pthread_mutex_lock(&t->lock);
	t->unprivileged = true;
	pthread_mutex_unlock(&t->lock);
	ring_bell(t->orders_fd);
}

void tracer_release(struct tracer *t)
{
	ask_for(t, STATE_RUNS);
}

int tracer_fd(const struct tracer *t)
{
	return t->events_fd;
}

bool tracer_next(struct tracer *t, struct tracer_event *event)
{
	struct tracer_list *l = &t->events;
	bool found;

	pthread_mutex_lock(&t->lock);
	found = l->nr > 0;
	if (found) {
		*event = l->v[0];
		memmove(l->v, l->v + 1, --l->nr * sizeof(*l->v));
	}
	if (!l->nr)
		silence(t->events_fd);
	pthread_mutex_unlock(&t->lock);
	return found;
}

void tracer_let_go(struct tracer *t, pid_t pid, bool to_start)
{
	const struct tracer_event order = {to_start ? TRACER_START : TRACER_EXEC, pid};
	bool pushed;

	do {
		pthread_mutex_lock(&t->lock);
		pushed = push_event(&t->orders, order);
		pthread_mutex_unlock(&t->lock);
	} while (!pushed); /* it must not be held forever */
	ring_bell(t->orders_fd);
}

bool tracer_stop(struct tracer *t, int *status)
{
	ask_for(t, STATE_OVER);
	if (!t->joined)
		pthread_join(t->thread, NULL);
	t->joined = true;
	*status = t->status;
	return t->waited;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	if (t->signal_fd >= 0)
		close(t->signal_fd);
	if (t->events_fd >= 0)
		close(t->events_fd);
	if (t->orders_fd >= 0)
		close(t->orders_fd);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->started);
	free(t->events.v);
	free(t->orders.v);
	free(t->to_start.v);
	free(t);
}
