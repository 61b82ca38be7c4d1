/* generated_names.c - see generated_names.h */
#include "report/trace/generated_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

/* Keep what the recorder says of names that are missing. */
static int note_problem(struct generated_names *all, const struct mlk_code_names *chunk)
{
	if (!chunk->problem[0])
		return 0;
	if (all->problem) {
		if (chunk->tgid == all->problem_tgid && chunk->source == all->problem_source)
			all->left_out_bytes = chunk->left_out;
		return 0;
	}
	all->problem = strdup(chunk->problem);
	all->problem_tgid = chunk->tgid;
	all->problem_source = chunk->source;
	all->left_out_bytes = chunk->left_out;
	return all->problem ? 0 : -ENOMEM;
}

static int add_name(struct generated_names *all, const struct mlk_code_name *from,
		    struct trace_modules *images)
{
	struct generated_name name = {
		.start = from->start, .end = from->start + from->len, .frame = from->frame};
	int err;

	if (all->nr >= GENERATED_NAMES_MAX) {
		all->left_out++;
		return 0;
	}
	err = trace_modules_intern_name(images, from->name, &name.number);
	if (err)
		return err;
	if (name.number == DWUNW_NO_MODULE) {
		all->left_out++;
		return 0;
	}
	return array_append(&all->names, &all->nr, &all->room, &name, sizeof(name));
}

int generated_names_add(struct generated_names *all, const struct mlk_code_names *chunk,
			struct trace_modules *images)
{
	struct generated_batch batch = {.tgid = chunk->tgid,
					.time_ns = chunk->time_ns,
					.anew = chunk->flags & MLK_CODE_NAMES_ANEW,
					.first = all->nr,
					.order = all->next_order++};
	int err = note_problem(all, chunk);

	for (size_t i = 0; !err && i < chunk->nr; i++)
		err = add_name(all, &chunk->names[i], images);
	batch.nr = all->nr - batch.first;
	if (err || (!batch.nr && !batch.anew))
		return err;
	return array_append(&all->batches, &all->nr_batches, &all->batches_room, &batch,
			    sizeof(batch));
}

static int compare_batches(const void *a, const void *b)
{
	const struct generated_batch *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void generated_names_sort(struct generated_names *all)
{
	if (all->nr_batches)
		qsort(all->batches, all->nr_batches, sizeof(*all->batches), compare_batches);
}

/* The first batch of a later process than @tgid, or of @tgid and later than @time_ns. */
static size_t find_later(const struct generated_names *all, uint32_t tgid, uint64_t time_ns)
{
	size_t low = 0, high = all->nr_batches;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct generated_batch *at = &all->batches[middle];

		if (at->tgid < tgid || (at->tgid == tgid && at->time_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t generated_names_epoch(const struct generated_names *all, uint32_t tgid, uint64_t time_ns,
			     bool *known)
{
	size_t at = find_later(all, tgid, time_ns);

	*known = (at && all->batches[at - 1].tgid == tgid) ||
		 (at < all->nr_batches && all->batches[at].tgid == tgid);
	return *known ? at : 0;
}

/* Those that hold at an epoch: the batches [from, now) override each other in their order, and give
 * way to none of [now, to). */
struct range {
	size_t from, now, to;
};

static struct range find_range(const struct generated_names *all, uint32_t tgid, size_t epoch)
{
	struct range r = {epoch, epoch, epoch};

	while (r.from && all->batches[r.from - 1].tgid == tgid) {
		r.from--;
		if (all->batches[r.from].anew)
			break;
	}
	while (r.to < all->nr_batches && all->batches[r.to].tgid == tgid &&
	       (r.to == r.from || !all->batches[r.to].anew))
		r.to++;
	return r;
}

/* The one of @maps that has @addr, or NULL. */
static const struct dwunw_mapping *find_mapping(const struct dwunw_mapping *maps, size_t nr,
						uint64_t addr)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < nr && maps[low].start <= addr ? &maps[low] : NULL;
}

/* A frame of @size bytes, as the unwinder has it; of one that is no frame nothing. */
static uint32_t size_flag(uint32_t size)
{
	return size % 8 || size > DWUNW_MAPPING_SIZE_MAX ? 0 : size << DWUNW_MAPPING_SIZE_SHIFT;
}

/* Append the functions of @batch to @to, @nr by now, where they are in generated code of @maps. */
static size_t append_batch(const struct generated_names *all, const struct generated_batch *batch,
			   const struct dwunw_mapping *maps, size_t nr_maps,
			   struct dwunw_mapping *to, size_t nr)
{
	for (size_t i = batch->first; i < batch->first + batch->nr; i++) {
		const struct generated_name *name = &all->names[i];
		const struct dwunw_mapping *in = find_mapping(maps, nr_maps, name->start);

		if (!in || !(in->flags & DWUNW_MAPPING_GENERATED) || name->end <= name->start)
			continue;
		to[nr++] = (struct dwunw_mapping){
			.start = name->start,
			.end = name->end < in->end ? name->end : in->end,
			.module = trace_modules_absent(name->number),
			.flags = DWUNW_MAPPING_GENERATED | DWUNW_MAPPING_FUNCTION |
				 size_flag(name->frame),
		};
	}
	return nr;
}

int generated_names_apply(const struct generated_names *all, uint32_t tgid, size_t epoch,
			  const struct dwunw_mapping *maps, size_t nr, struct dwunw_mapping **out,
			  size_t *nr_out)
{
	const struct range r = find_range(all, tgid, epoch);
	size_t room = nr + 1, end = nr;

	for (size_t i = r.from; i < r.to; i++)
		room += all->batches[i].nr;
	*nr_out = 0;
	*out = calloc(room, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	if (nr)
		memcpy(*out, maps, nr * sizeof(*maps));
	for (size_t i = r.to; i-- > r.now;)
		end = append_batch(all, &all->batches[i], maps, nr, *out, end);
	for (size_t i = r.from; i < r.now; i++)
		end = append_batch(all, &all->batches[i], maps, nr, *out, end);
	*nr_out = end;
	return 0;
}

void generated_names_release(struct generated_names *all)
{
	free(all->names);
	free(all->batches);
	free(all->problem);
	*all = (struct generated_names){0};
}
