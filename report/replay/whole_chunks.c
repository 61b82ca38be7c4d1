/* whole_chunks.c - see whole_chunks.h */
#include "report/replay/whole_chunks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define EXAMINED (MLK_RECORD_EVENT | MLK_RECORD_STACK | MLK_RECORD_UNWOUND)

struct whole_chunks {
	struct mlk_reader *trace; /* of its own */
	const struct mlk_entry *entries;
	size_t nr;
	pthread_t thread;
	bool whole;
};

static void *examine(void *arg)
{
	struct whole_chunks *w = arg;

	for (size_t i = 0; w->whole && i < w->nr; i++)
		if (w->entries[i].records & EXAMINED)
			w->whole = !mlk_reader_check(w->trace, &w->entries[i]);
	return NULL;
}

int whole_chunks_begin(struct whole_chunks **out, struct mlk_reader *trace)
{
	struct whole_chunks *w = calloc(1, sizeof(*w));
	int err = w ? mlk_reader_clone(&w->trace, trace) : -ENOMEM;

	*out = NULL;
	if (!err)
		err = mlk_reader_list(w->trace, &w->entries, &w->nr);
	if (!err) {
		w->whole = true;
		err = -pthread_create(&w->thread, NULL, examine, w);
	}
	if (!err) {
		*out = w;
		return 0;
	}
	if (w)
		mlk_reader_free(w->trace);
	free(w);
	return err;
}

bool whole_chunks_end(struct whole_chunks *w)
{
	bool whole;

	pthread_join(w->thread, NULL);
	whole = w->whole;
	mlk_reader_free(w->trace);
	free(w);
	return whole;
}
