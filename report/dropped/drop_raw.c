/* drop_raw.c - see drop_raw.h */
#include "report/dropped/drop_raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/decode/stored_stacks.h"
#include "report/dropped/block_numbers.h"
#include "report/dropped/used_names.h"

/* A chunk is written when it has so much.  Each one has its stacks in it, so more are better: of
 * twice as many events, a compile by gcc takes two thirds of the bytes.  But a report holds some
 * chunks of events at a time.  Beyond CHUNK_BYTES a chunk has room for the deepest stack. */
#define CHUNK_EVENTS (512u << 10)
#define CHUNK_BYTES  (3328u << 10)

/* Times are kept to so many parts of the whole at least, but no coarser than in milliseconds. */
#define TIME_PARTS  16384
#define MIN_TIME_NS 1000
#define MAX_TIME_NS 1000000

struct drop_raw {
	struct mlk_copy *copy;
	struct mlk_summary *summary;
	struct stored_stacks *stacks;
	struct block_numbers *numbers; /* NULL: addresses stay, and so do the modules */
};

/* An address that a stack has in a module. */
struct used_addr {
	uint32_t module; /* the unwinder's number */
	uint64_t addr;
};

enum mlk_copy_drops drop_raw_parts(const struct mlk_meta *meta)
{
	/* the state of a thread that found an overrun is unwound when it is shown */
	return meta->guarded ? MLK_COPY_DROP_RAW : MLK_COPY_DROP_MODULES;
}

/* Nanoseconds to which the times of @trace are kept: all of them where they tell which block an
 * overrun belongs to. */
static int time_unit(struct mlk_reader *trace, uint64_t *unit)
{
	uint64_t start = mlk_reader_meta(trace)->start_ns, last = start;
	const struct mlk_entry *entries;
	size_t nr;
	int err = mlk_reader_list(trace, &entries, &nr);

	for (size_t i = 0; i < nr; i++)
		if (entries[i].last_ns > last)
			last = entries[i].last_ns;
	for (*unit = MIN_TIME_NS; *unit < MAX_TIME_NS && *unit < (last - start) / TIME_PARTS;)
		*unit *= 10;
	if (mlk_reader_meta(trace)->guarded)
		*unit = 1;
	return err;
}

int drop_raw_new(struct drop_raw **out, struct mlk_copy *copy, struct mlk_reader *trace)
{
	struct drop_raw *drop = calloc(1, sizeof(*drop));
	uint64_t unit;
	int err;

	*out = NULL;
	if (!drop)
		return -ENOMEM;
	drop->copy = copy;
	err = time_unit(trace, &unit);
	if (!err)
		err = mlk_summary_new(&drop->summary, mlk_reader_meta(trace)->start_ns, unit);
	if (!err && drop_raw_parts(mlk_reader_meta(trace)) == MLK_COPY_DROP_MODULES)
		err = block_numbers_new(&drop->numbers);
	if (err)
		drop_raw_free(drop);
	else
		*out = drop;
	return err;
}

/* Write the chunk that was gathered, if there is one, and begin another. */
static int flush_chunk(struct drop_raw *drop)
{
	struct mlk_unwound unwound;
	int err = 0;

	stored_stacks_get(drop->stacks, &unwound);
	if (mlk_summary_events(drop->summary))
		err = mlk_copy_summary(drop->copy, drop->summary, &unwound);
	mlk_summary_clear(drop->summary);
	stored_stacks_begin(drop->stacks);
	return err;
}

static bool is_chunk_full(const struct drop_raw *drop)
{
	return mlk_summary_events(drop->summary) >= CHUNK_EVENTS ||
	       mlk_summary_bytes(drop->summary) + stored_stacks_bytes(drop->stacks) >= CHUNK_BYTES;
}

static int add_event(struct drop_raw *drop, const struct batch_event *from, const uint32_t *ids)
{
	uint32_t id = from->kind == MLK_ALLOC ? ids[from->stack] : 0, number = 0;
	struct mlk_event event = {0};
	int err = 0;

	batch_get_event(from, &event);
	if (drop->numbers)
		err = block_numbers_apply(drop->numbers, &event, id);
	if (!err && is_chunk_full(drop))
		err = flush_chunk(drop);
	if (!err && event.kind == MLK_ALLOC)
		err = stored_stacks_add(drop->stacks, id, &number);
	return err ? err : mlk_summary_add(drop->summary, &event, number);
}

int drop_raw_batch(struct drop_raw *drop, const struct replay *leaks, const struct batch *batch,
		   const uint32_t *ids)
{
	int err = 0;

	if (!drop->stacks) {
		err = stored_stacks_new(&drop->stacks, leaks->dw, leaks->images);
		if (!err)
			stored_stacks_begin(drop->stacks);
	}
	for (size_t i = 0; !err && i < batch->nr_events; i++)
		err = add_event(drop, &batch->events[i], ids);
	return err;
}

static int compare_addrs(const void *a, const void *b)
{
	const struct used_addr *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The addresses of all frames, by module, each once.  For a return address that before it counts,
 * too. */
static int list_addrs(const struct dwunw *dw, struct used_addr **list, size_t *nr)
{
	size_t room = 0, kept = 0;
	int err = 0;

	*list = NULL;
	*nr = 0;
	for (uint32_t id = 1; !err && id < dwunw_stack_limit(dw); id++) {
		struct dwunw_frame frame;
		struct used_addr used;

		if (!dwunw_stack_frames(dw, id, &frame, 1))
			continue;
		used = (struct used_addr){frame.module, frame.addr};
		err = array_append(list, nr, &room, &used, sizeof(used));
		used.addr--;
		if (!err)
			err = array_append(list, nr, &room, &used, sizeof(used));
	}
	if (*nr)
		qsort(*list, *nr, sizeof(**list), compare_addrs);
	for (size_t i = 0; i < *nr; i++)
		if (!kept || compare_addrs(&(*list)[i], &(*list)[kept - 1]))
			(*list)[kept++] = (*list)[i];
	*nr = kept;
	return err;
}

/* The addresses of @list in the module that the trace calls @number, into @addrs. */
static size_t addrs_in(const struct trace_modules *images, uint32_t number,
		       const struct used_addr *list, size_t nr, uint64_t *addrs)
{
	uint32_t of = UINT32_MAX, last = DWUNW_NO_MODULE;
	size_t found = 0;

	for (size_t i = 0; i < nr; i++) {
		if (list[i].module != last &&
		    !trace_modules_number(images, last = list[i].module, &of))
			of = UINT32_MAX;
		if (of == number)
			addrs[found++] = list[i].addr;
	}
	return found;
}

/* Write @module with the names of functions at @addrs alone. */
static int write_module(const struct drop_raw *drop, const struct trace_module *module,
			const uint64_t *addrs, size_t nr)
{
	bool whole = module->whole && !module->broken && module->len == module->whole;
	struct mlk_module to = {.id = module->id, .path = module->path};
	uint8_t *image = whole ? malloc(module->len) : NULL;
	int err = whole && !image ? -ENOMEM : 0;

	if (image) {
		memcpy(image, module->bytes, module->len);
		err = used_names_keep(image, module->len, addrs, nr);
		to.piece = image;
		to.image_len = module->len;
	}
	if (!err)
		err = mlk_copy_module(drop->copy, &to);
	free(image);
	return err;
}

static int write_modules(const struct drop_raw *drop, const struct replay *leaks)
{
	struct used_addr *list;
	size_t nr;
	int err = list_addrs(leaks->dw, &list, &nr);
	uint64_t *addrs = calloc(nr + 1, sizeof(*addrs));

	if (!addrs)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < leaks->images->nr; i++)
		if (leaks->images->all[i].id.len)
			err = write_module(drop, &leaks->images->all[i], addrs,
					   addrs_in(leaks->images, i, list, nr, addrs));
	free(addrs);
	free(list);
	return err;
}

int drop_raw_finish(struct drop_raw *drop, const struct replay *leaks)
{
	int err = drop->stacks ? flush_chunk(drop) : 0;

	if (!err)
		err = mlk_copy_until(drop->copy, UINT64_MAX);
	return !err && drop->numbers ? write_modules(drop, leaks) : err;
}

void drop_raw_free(struct drop_raw *drop)
{
	if (!drop)
		return;
	mlk_summary_free(drop->summary);
	stored_stacks_free(drop->stacks);
	block_numbers_free(drop->numbers);
	free(drop);
}
