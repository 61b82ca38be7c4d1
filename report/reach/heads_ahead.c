/* heads_ahead.c - see heads_ahead.h */
#include "report/reach/heads_ahead.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/ahead.h"

#define IN_A_BATCH 8192

struct heads_ahead {
	struct mlk_reader *trace;
	struct heads_wanted wanted;
	struct ahead *ahead;
	struct batch places[AHEAD_PLACES];
	int err; /* behind the events that were read */
};

static int read_heads(void *arg, size_t place)
{
	struct heads_ahead *h = arg;
	struct batch *batch = &h->places[place];
	struct mlk_record record;
	int more = h->err;

	batch->nr_events = 0;
	batch->of_kernel = mlk_reader_meta(h->trace)->of_kernel;
	while (!h->err && batch->nr_events < IN_A_BATCH &&
	       (more = mlk_reader_next(h->trace, &record)) > 0)
		if (h->wanted.wants(h->wanted.arg, &record.event))
			h->err = batch_add_event(batch, &record.event, 0);
	if (!h->err && more < 0)
		h->err = more;
	return batch->nr_events ? 1 : h->err;
}

int heads_ahead_new(struct heads_ahead **out, struct mlk_reader *trace,
		    const struct heads_wanted *wanted)
{
	struct heads_ahead *h = *out = calloc(1, sizeof(*h));
	const struct ahead_steps steps = {.fill = read_heads, .arg = h};
	int err;

	if (!h)
		return -ENOMEM;
	h->trace = trace;
	h->wanted = *wanted;
	mlk_reader_rewind(trace, MLK_RECORD_HEAD);
	err = ahead_new(&h->ahead, &steps);
	if (!err)
		return 0;
	free(h);
	*out = NULL;
	return err;
}

int heads_ahead_next(struct heads_ahead *h, const struct batch **batch)
{
	size_t place;
	int more = ahead_next(h->ahead, &place);

	*batch = more > 0 ? &h->places[place] : NULL;
	return more;
}

void heads_ahead_free(struct heads_ahead *h)
{
	if (!h)
		return;
	ahead_free(h->ahead);
	for (int i = 0; i < AHEAD_PLACES; i++)
		batch_release(&h->places[i]);
	free(h);
}
