/* overruns.c - see overruns.h */
#include "report/replay/overruns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/decode/event_unwinder.h"

#define NEAR	   (1u << 20) /* bytes: what is further away is no neighbour */
#define MAX_LOOKED 64 /* sites of whose first block the neighbours are looked for: that costs */

int overruns_new(struct overruns **out)
{
	return (*out = calloc(1, sizeof(**out))) ? 0 : -ENOMEM;
}

int overruns_note(struct overruns *overruns, const struct mlk_overrun *overrun)
{
	struct overrun *copy = malloc(sizeof(*copy) + (overrun->bytes ? overrun->len : 0));
	int err;

	if (!copy)
		return -ENOMEM;
	*copy = (struct overrun){
		.tgid = overrun->at.tgid,
		.tid = overrun->at.tid,
		.time_ns = overrun->at.time_ns,
		.addr = overrun->at.addr,
		.size = overrun->at.size,
		.found = overrun->found,
		.offset = overrun->offset,
		.len = overrun->len,
		.changed = overrun->changed,
		.found_stack = OVERRUNS_NO_STACK,
		.alloc_stack = OVERRUNS_NO_STACK,
	};
	if (overrun->bytes)
		copy->bytes = memcpy(copy + 1, overrun->bytes, overrun->len);
	err = array_append(&overruns->noted, &overruns->nr_noted, &overruns->room, &copy,
			   sizeof(copy));
	if (err)
		free(copy);
	return err;
}

static int compare_overruns(const void *a, const void *b)
{
	const struct overrun *x = *(struct overrun *const *)a, *y = *(struct overrun *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

int overruns_sort(struct overruns *overruns, uint64_t stop_ns, uint32_t pid)
{
	overruns->all = calloc(overruns->nr_noted + 1, sizeof(*overruns->all));
	if (!overruns->all)
		return -ENOMEM;
	for (size_t i = 0; i < overruns->nr_noted; i++) {
		struct overrun *o = overruns->noted[i];

		if (o->time_ns <= stop_ns && (!pid || o->tgid == pid))
			overruns->all[overruns->nr++] = o;
	}
	qsort(overruns->all, overruns->nr, sizeof(*overruns->all), compare_overruns);
	return 0;
}

static bool same_site(const void *things, uint32_t number, const void *key)
{
	const struct overruns *overruns = things;
	const struct overrun *a = overruns->all[overruns->sites.all[number].first], *b = key;

	return a->alloc_stack == b->alloc_stack && a->tgid == b->tgid &&
	       (a->offset < 0) == (b->offset < 0);
}

/* Count @overruns->all[@i] at its site.  Returns 1 if that is new, 0 or -ENOMEM. */
static int count_site(struct overruns *overruns, size_t i)
{
	const struct overrun *o = overruns->all[i];
	struct hash_query query = {
		.hash = hash_word(hash_word(o->alloc_stack, o->tgid), o->offset < 0),
		.things = overruns,
		.key = o,
		.equal = same_site};
	const struct overrun_site site = {.first = i};
	uint32_t number;
	int added = intern(&overruns->sites.table, &query, &site, sizeof(site), &number);

	if (added >= 0)
		overruns->sites.all[number].nr++;
	return added;
}

static void look_around(struct overrun *o, const struct live *live)
{
	for (size_t i = live_nr_processes(live); i-- > 0;)
		if (live_process(live, i).tgid == o->tgid) {
			live_look_around(live, i, o->addr, &o->around);
			o->around.has_before &=
				o->addr - o->around.before.addr - o->around.before.size <= NEAR;
			o->around.has_after &= o->around.after.addr - o->addr - o->size <= NEAR;
			o->looked = true;
			return;
		}
}

/* What was found before @live changes: whose block it is. */
static int resolve_overrun(struct overruns *overruns, size_t i, const struct live *live,
			   const struct stacks *stacks)
{
	struct overrun *o = overruns->all[i];
	int is_new;

	o->known = live_find(live, o->tgid, o->addr, &o->block);
	if (o->known)
		o->alloc_stack = stacks->all[o->block.stack].id;
	if (o->known && o->size == UINT64_MAX)
		o->size = o->block.size;
	is_new = count_site(overruns, i);
	if (is_new > 0 && overruns->sites.nr <= MAX_LOOKED)
		look_around(o, live);
	return is_new < 0 ? is_new : 0;
}

int overruns_until(struct overruns *overruns, uint64_t time_ns, const struct live *live,
		   const struct stacks *stacks)
{
	int err = 0;

	while (!err && overruns->resolved < overruns->nr &&
	       overruns->all[overruns->resolved]->time_ns <= time_ns)
		err = resolve_overrun(overruns, overruns->resolved++, live, stacks);
	return err;
}

void overruns_free(struct overruns *overruns)
{
	if (!overruns)
		return;
	for (size_t i = 0; i < overruns->nr_noted; i++)
		free(overruns->noted[i]);
	free(overruns->noted);
	free(overruns->all);
	intern_release(&overruns->sites.table);
	free(overruns);
}

/* Separate from the threads' events, because it is not between them. */
static int unwind_next_finder(struct overruns *overruns, struct event_unwinder *capture,
			      const struct mlk_overrun *overrun)
{
	struct mlk_event at = overrun->at;
	uint32_t id;
	int err;

	at.stack_same_from = UINT64_MAX;
	err = event_unwinder_stack(capture, &at, &id);
	if (!err && overruns->named < overruns->nr_noted)
		overruns->noted[overruns->named++]->found_stack = id;
	return err;
}

int overruns_unwind_finders(struct overruns *overruns, struct mlk_reader *trace, struct dwunw *dw,
			    struct address_spaces *spaces)
{
	struct stack_history *none = NULL;
	struct event_unwinder *capture;
	struct mlk_record record;
	bool raw = mlk_reader_meta(trace)->stack_mode == MLK_STACK_RAW;
	int more = 1, err;

	err = event_unwinder_new(&capture, dw, spaces, raw);
	if (!err)
		err = stack_history_new(&none, NULL, NULL);
	if (!err)
		event_unwinder_begin(capture, none);
	mlk_reader_rewind(trace, MLK_RECORD_OVERRUN);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		err = unwind_next_finder(overruns, capture, &record.overrun);
	event_unwinder_free(capture);
	stack_history_free(none);
	return err ? err : more;
}
