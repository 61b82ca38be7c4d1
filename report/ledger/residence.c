/* residence.c - see residence.h */
#include "report/ledger/residence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

#define SP 7 /* DWARF number, psABI figure 3.36 */

static void forget(struct residence *of)
{
	for (size_t i = 0; i < of->nr; i++)
		free(of->mappings[i].path);
	of->nr = of->nr_runs = of->nr_stacks = of->nr_pieces = 0;
	of->whole = false;
}

/* That of the process and snapshot of @smaps; a later one takes the place of the one before. */
static struct residence *residence_of(struct residences *r, const struct mlk_smaps *smaps)
{
	struct residence none = {
		.tgid = smaps->tgid, .snapshot = smaps->snapshot, .time_ns = smaps->time_ns};
	struct residence *of;

	for (size_t i = 0; i < r->nr; i++) {
		of = &r->all[i];
		if (of->tgid != smaps->tgid)
			continue;
		/* without a time it was begun by what stands before */
		if (of->snapshot != smaps->snapshot ||
		    (of->time_ns && of->time_ns != smaps->time_ns)) {
			forget(of);
			of->snapshot = smaps->snapshot;
		}
		of->time_ns = smaps->time_ns;
		return of;
	}
	return array_append(&r->all, &r->nr, &r->room, &none, sizeof(none)) ? NULL
									    : &r->all[r->nr - 1];
}

static int add_runs(struct residence *of, const struct mlk_smaps *smaps)
{
	struct residence_mapping *last = &of->mappings[of->nr - 1];
	uint64_t end = last->nr_runs ? of->runs[of->nr_runs - 1].end : last->start;
	int err = 0;

	/* what is made by hand may be in any order */
	for (size_t i = 0; i < smaps->nr_pages && !err; i++) {
		if (smaps->pages[i].start < end || smaps->pages[i].end > last->end)
			continue;
		end = smaps->pages[i].end;
		err = array_append(&of->runs, &of->nr_runs, &of->room_runs, &smaps->pages[i],
				   sizeof(smaps->pages[i]));
		last->nr_runs += !err;
	}
	return err;
}

static int add_mapping(struct residences *r, const struct mlk_smaps *smaps)
{
	struct residence *of = residence_of(r, smaps);
	struct residence_mapping m = {
		.start = smaps->start, .end = smaps->end, .perms = smaps->perms};
	int err;

	if (!of)
		return -ENOMEM;
	if (!smaps->known)
		return of->nr && of->mappings[of->nr - 1].start == smaps->start
			       ? add_runs(of, smaps)
			       : 0;
	if (of->nr && smaps->start < of->mappings[of->nr - 1].end)
		return 0;
	m.first_run = of->nr_runs;
	m.path = strdup(smaps->path);
	memcpy(m.value, smaps->value, sizeof(m.value));
	err = m.path ? array_append(&of->mappings, &of->nr, &of->room, &m, sizeof(m)) : -ENOMEM;
	if (err) {
		free(m.path);
		return err;
	}
	return add_runs(of, smaps);
}

static struct residence *snapshot_of(struct residences *r, uint32_t tgid, uint32_t snapshot)
{
	for (size_t i = 0; i < r->nr; i++)
		if (r->all[i].tgid == tgid && r->all[i].snapshot == snapshot)
			return &r->all[i];
	return NULL;
}

static int add_stacks(struct residences *r, const struct mlk_pass *pass)
{
	struct residence *of = snapshot_of(r, pass->tgid, pass->snapshot);
	int err = 0;

	for (size_t i = 0; of && i < pass->nr_threads && !err; i++)
		if (pass->threads[i].known >> SP & 1)
			err = array_append(&of->stacks, &of->nr_stacks, &of->room_stacks,
					   &pass->threads[i].regs[SP], sizeof(*of->stacks));
	return err;
}

/* A part of the walk: what is made by hand may be in any order. */
static int add_pieces(struct residences *r, const struct mlk_heap *heap)
{
	struct residence *of = snapshot_of(r, heap->tgid, heap->snapshot);
	int err = 0;

	for (size_t i = 0; of && i < heap->nr && !err; i++) {
		const struct mlk_heap_block *last =
			of->nr_pieces ? &of->pieces[of->nr_pieces - 1] : NULL;

		if (!last || heap->blocks[i].address >= last->address + last->size)
			err = array_append(&of->pieces, &of->nr_pieces, &of->room_pieces,
					   &heap->blocks[i], sizeof(*of->pieces));
	}
	if (of && heap->flags & MLK_HEAP_LAST) {
		of->whole = !heap->unwalked && heap->allocator[0];
		of->trims = !strstr(heap->allocator, "jemalloc") &&
			    !strstr(heap->allocator, "tcmalloc");
	}
	return err;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void residences_sort(struct residences *r)
{
	for (size_t i = 0; i < r->nr; i++)
		if (r->all[i].nr_stacks)
			qsort(r->all[i].stacks, r->all[i].nr_stacks, sizeof(*r->all[i].stacks),
			      by_number);
}

/* A snapshot begins, of which the mappings come last. */
static int begin_snapshot(struct residences *r, uint32_t tgid, uint32_t snapshot)
{
	const struct residence new = {.tgid = tgid, .snapshot = snapshot};

	for (size_t i = 0; i < r->nr; i++) {
		if (r->all[i].tgid != tgid)
			continue;
		if (r->all[i].snapshot != snapshot) {
			forget(&r->all[i]);
			r->all[i].snapshot = snapshot;
			r->all[i].time_ns = 0;
		}
		return 0;
	}
	return array_append(&r->all, &r->nr, &r->room, &new, sizeof(new));
}

int residences_note(struct residences *r, const struct mlk_record *record)
{
	int err;

	if (record->type == MLK_RECORD_SMAPS)
		return add_mapping(r, &record->smaps);
	if (record->type == MLK_RECORD_PASS) {
		err = begin_snapshot(r, record->pass.tgid, record->pass.snapshot);
		return err ? err : add_stacks(r, &record->pass);
	}
	err = begin_snapshot(r, record->heap.tgid, record->heap.snapshot);
	return err ? err : add_pieces(r, &record->heap);
}

/* Read what @records of the trace say by @add.  Returns as residences_find(). */
static int read_all(struct residences *r, struct mlk_reader *trace, unsigned int records,
		    uint64_t stop_ns)
{
	struct mlk_record record;
	int more = 0, err = 0;

	mlk_reader_rewind(trace, records);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0) {
		if (record.type == MLK_RECORD_SMAPS && record.smaps.time_ns <= stop_ns)
			err = add_mapping(r, &record.smaps);
		else if (record.type == MLK_RECORD_PASS)
			err = add_stacks(r, &record.pass);
		else if (record.type == MLK_RECORD_HEAP)
			err = add_pieces(r, &record.heap);
	}
	return err ? err : more;
}

int residences_find(struct residences *r, struct mlk_reader *trace, uint64_t stop_ns)
{
	int err;

	*r = (struct residences){0};
	err = read_all(r, trace, MLK_RECORD_SMAPS, stop_ns);
	if (!err && r->nr)
		err = read_all(r, trace, MLK_RECORD_PASS | MLK_RECORD_HEAP, stop_ns);
	residences_sort(r);
	return err;
}

uint64_t residences_time(const struct residences *r)
{
	uint64_t time_ns = 0;

	for (size_t i = 0; i < r->nr; i++)
		if (r->all[i].time_ns > time_ns)
			time_ns = r->all[i].time_ns;
	return time_ns;
}

static void release_one(struct residence *of)
{
	forget(of);
	free(of->mappings);
	free(of->runs);
	free(of->stacks);
	free(of->pieces);
}

void residences_drop_whole(struct residences *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		if (r->all[i].time_ns)
			release_one(&r->all[i]);
		else
			r->all[kept++] = r->all[i];
	}
	r->nr = kept;
}

void residences_release(struct residences *r)
{
	for (size_t i = 0; i < r->nr; i++)
		release_one(&r->all[i]);
	free(r->all);
	*r = (struct residences){0};
}
