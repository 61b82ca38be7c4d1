/* heaptrack_events.c - see heaptrack_events.h */
#include "report/stats/heaptrack_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/base/hash_index.h"

struct heaptrack_events {
	FILE *lines;
	uint64_t start_ns;
	uint64_t now_ms; /* of the last line of time */
	INTERN_OF(struct heaptrack_kind);
	int err;
};

int heaptrack_events_new(struct heaptrack_events **out, uint64_t start_ns)
{
	struct heaptrack_events *events = calloc(1, sizeof(*events));
	int err;

	*out = NULL;
	if (!events)
		return -ENOMEM;
	events->start_ns = start_ns;
	events->lines = tmpfile();
	if (!events->lines) {
		err = -errno;
		free(events);
		return err;
	}
	*out = events;
	return 0;
}

static bool same_kind(const void *things, uint32_t number, const void *key)
{
	const struct heaptrack_kind *a = &((const struct heaptrack_events *)things)->all[number];
	const struct heaptrack_kind *b = key;

	return a->size == b->size && a->stack == b->stack;
}

static int find_kind(struct heaptrack_events *events, const struct heaptrack_kind *kind,
		     uint32_t *number)
{
	struct hash_query query = {
		.hash = hash_word(kind->stack, kind->size),
		.things = events,
		.key = kind,
		.equal = same_kind,
	};
	int added = intern(&events->table, &query, kind, sizeof(*kind), number);

	return added < 0 ? added : 0;
}

static void put_time(struct heaptrack_events *events, uint64_t time_ns)
{
	uint64_t ms = time_ns > events->start_ns ? (time_ns - events->start_ns) / 1000000 : 0;

	/* threads' events may run backwards by some microseconds */
	if (ms <= events->now_ms)
		return;
	events->now_ms = ms;
	fprintf(events->lines, "c %" PRIx64 "\n", ms);
}

void heaptrack_events_changed(void *arg, const struct live_change *change)
{
	struct heaptrack_events *events = arg;
	struct heaptrack_kind kind = {change->block->size, change->block->stack};
	uint64_t blocks = live_change_of_outstanding(change).blocks;
	uint32_t number;

	if (!blocks || events->err)
		return;
	events->err = find_kind(events, &kind, &number);
	if (events->err)
		return;
	if (change->event)
		put_time(events, change->event->time_ns);
	fprintf(events->lines, "%c %" PRIx32 "\n", blocks == 1 ? '+' : '-', number);
}

size_t heaptrack_events_kinds(const struct heaptrack_events *events,
			      const struct heaptrack_kind **kinds)
{
	*kinds = events->all;
	return events->nr;
}

/* Whether @line, which is one of ours, is not of a stack that has no step. */
static bool is_wanted(const struct heaptrack_events *events, const char *line,
		      const uint32_t *steps)
{
	return line[0] == 'c' || steps[events->all[strtoul(line + 2, NULL, 16)].stack];
}

int heaptrack_events_copy(struct heaptrack_events *events, FILE *out, const uint32_t *steps,
			  uint64_t end_ns)
{
	char line[64];

	put_time(events, end_ns);
	if (fflush(events->lines) || ferror(events->lines))
		return -EIO;
	rewind(events->lines);
	while (fgets(line, sizeof(line), events->lines))
		if (is_wanted(events, line, steps))
			fputs(line, out);
	if (ferror(events->lines))
		return -EIO;
	return events->err;
}

void heaptrack_events_free(struct heaptrack_events *events)
{
	if (!events)
		return;
	fclose(events->lines);
	intern_release(&events->table);
	free(events);
}
