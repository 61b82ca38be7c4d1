/* stack_times.c - see stack_times.h */
#include "report/stats/stack_times.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

#define FIRST_WIDTH_NS 1000000u

int stack_times_new(struct stack_times **out, uint64_t start_ns)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->start_ns = start_ns;
	(*out)->width_ns = FIRST_WIDTH_NS;
	return 0;
}

/* Make one slice of two: what is outstanding at its end is what the later one has. */
static void widen_track(struct stack_track *track)
{
	size_t to = 0;

	for (size_t at = 0; at < track->nr; at++) {
		struct stack_time time = track->all[at];

		time.slice /= 2;
		if (to && track->all[to - 1].slice == time.slice)
			to--;
		track->all[to++] = time;
	}
	track->nr = to;
}

static size_t slice_of(struct stack_times *times, uint64_t time_ns)
{
	uint64_t since = time_ns > times->start_ns ? time_ns - times->start_ns : 0;

	while (since / times->width_ns >= STACK_TIMES_SLICES) {
		times->width_ns *= 2;
		times->last /= 2;
		for (size_t i = 0; i < times->nr; i++)
			widen_track(&times->all[i]);
	}
	/* events of different threads may run backwards by some microseconds */
	if (since / times->width_ns > times->last)
		times->last = (size_t)(since / times->width_ns);
	return times->last;
}

static int add_to_track(struct stack_track *track, size_t slice, struct live_amount more)
{
	struct stack_time time = {.slice = slice};

	if (track->nr)
		time.amount = track->all[track->nr - 1].amount;
	live_amount_add(&time.amount, more);
	if (!track->nr || track->all[track->nr - 1].slice != slice)
		return array_append(&track->all, &track->nr, &track->room, &time, sizeof(time));
	track->all[track->nr - 1] = time;
	return 0;
}

void stack_times_changed(void *arg, const struct live_change *change)
{
	struct live_amount more = live_change_of_outstanding(change);
	struct stack_times *times = arg;
	uint32_t number = change->block->stack;
	size_t slice;

	if (!more.blocks && !more.bytes)
		return;
	/* what the end of the trace changes is in the last slice */
	slice = change->event ? slice_of(times, change->event->time_ns) : times->last;
	if (array_cover(&times->all, &times->room, (size_t)number + 1, sizeof(*times->all))) {
		times->failed = true;
		return;
	}
	if (number >= times->nr)
		times->nr = (size_t)number + 1;
	times->failed |= add_to_track(&times->all[number], slice, more) != 0;
}

int stack_times_finish(struct stack_times *times, uint64_t end_ns)
{
	times->slices = slice_of(times, end_ns) + 1;
	return times->failed ? -ENOMEM : 0;
}

struct stack_track stack_times_of(const struct stack_times *times, uint32_t number)
{
	return number < times->nr ? times->all[number] : (struct stack_track){0};
}

uint64_t stack_times_until(const struct stack_times *times, size_t i, uint64_t end_ns)
{
	if (i + 1 == times->slices)
		return end_ns > times->start_ns ? end_ns - times->start_ns : 0;
	return (i + 1) * times->width_ns;
}

void stack_times_free(struct stack_times *times)
{
	if (!times)
		return;
	for (size_t i = 0; i < times->nr; i++)
		free(times->all[i].all);
	free(times->all);
	free(times);
}
