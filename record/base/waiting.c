/* waiting.c - see waiting.h */
#include "record/base/waiting.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/clock.h"

#define SECOND_NS 1000000000u
#define AGAIN	  5 /* seconds until a line is repeated where lines stay */

/* Return at @w->since_ns + @seconds, or when it is over. */
static void sleep_until(struct waiting *w, unsigned int seconds)
{
	uint64_t at_ns = w->since_ns + seconds * (uint64_t)SECOND_NS;
	const struct timespec at = {.tv_sec = (time_t)(at_ns / SECOND_NS),
				    .tv_nsec = (long)(at_ns % SECOND_NS)};

	while (!w->over && clock_now_ns() < at_ns)
		pthread_cond_timedwait(&w->changed, &w->lock, &at);
}

static void tell(struct waiting *w, unsigned int seconds)
{
	char count[64] = "";

	if (w->of > 1)
		snprintf(count, sizeof(count), " (%zu of %zu)", w->nr, w->of);
	if (!w->terminal) {
		log_info("nothing is recorded yet after %u s: waiting for %s%s", seconds, w->what,
			 count);
		return;
	}
	fprintf(stderr, "\r\033[K%u s, nothing is recorded yet: waiting for %s%s", seconds, w->what,
		count);
	fflush(stderr);
	log_over_line();
}

static void *run(void *arg)
{
	struct waiting *w = arg;
	unsigned int seconds = 1;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		sleep_until(w, seconds);
		if (w->over)
			break;
		tell(w, seconds);
		seconds = (unsigned int)((clock_now_ns() - w->since_ns) / SECOND_NS) +
			  (w->terminal ? 1 : AGAIN);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void waiting_begin(struct waiting *w)
{
	pthread_condattr_t attr;

	*w = (struct waiting){.what = "the system",
			      .since_ns = clock_now_ns(),
			      .terminal = isatty(STDERR_FILENO) && !log_is_quiet()};
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	w->begun = !pthread_create(&w->thread, NULL, run, w);
}

void waiting_for(struct waiting *w, const char *what, size_t nr, size_t of)
{
	if (!w->begun)
		return;
	pthread_mutex_lock(&w->lock);
	w->what = what;
	w->nr = nr;
	w->of = of;
	pthread_mutex_unlock(&w->lock);
}

void waiting_end(struct waiting *w)
{
	if (!w->begun)
		return;
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	log_end_line();
	*w = (struct waiting){0};
}
