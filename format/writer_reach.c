/* writer_reach.c - snapshots of a process's memory, and names of its code, to the payloads of
 * chunks */
#include "format/record/code_names.h"
#include "format/record/heap.h"
#include "format/record/reach.h"
#include "format/record/regions.h"
#include "format/record/smaps.h"
#include "format/writer_state.h"

#define SMAPS_BYTES (1u << 20) /* of a chunk, but for its last mapping */
#define SMAPS_RUNS  65536      /* of a record */

int mlk_writer_pointers(struct mlk_writer *w, const struct mlk_pointers *pointers, uint64_t time_ns)
{
	struct mlk_enc e = {0};
	int err = mlk_pointers_encode(&e, pointers);

	if (err)
		return err;
	return mlk_writer_put_single(w, MLK_CHUNK_POINTERS, time_ns, &e);
}

int mlk_writer_pass(struct mlk_writer *w, const struct mlk_pass *pass)
{
	struct mlk_chunk h = {.type = MLK_CHUNK_PASS,
			      .first_ns = pass->begin_ns,
			      .last_ns = pass->end_ns,
			      .nr_records = 1};
	struct mlk_enc e = {0};
	int err = mlk_pass_encode(&e, pass);

	if (err)
		return err;
	return mlk_writer_put(w, &h, &e);
}

int mlk_writer_heap(struct mlk_writer *w, const struct mlk_heap *heap)
{
	size_t done = 0;
	int err = 0;

	do {
		struct mlk_heap part = *heap;
		struct mlk_enc e = {0};

		part.blocks += done;
		part.nr = heap->nr - done < MLK_MAX_HEAP_BLOCKS ? heap->nr - done
								: MLK_MAX_HEAP_BLOCKS;
		done += part.nr;
		part.flags = done == heap->nr ? MLK_HEAP_LAST : 0;
		if (done < heap->nr)
			part.nr_arenas = part.unwalked = 0;
		err = mlk_heap_encode(&e, &part);
		if (!err)
			err = mlk_writer_put_single(w, MLK_CHUNK_HEAP, heap->end_ns, &e);
	} while (!err && done < heap->nr);
	return err;
}

/* Write a chunk of as many mappings from *@done on as it should hold, of the first the pages from
 * the run *@runs on.  Both go on to what is left.  Returns as the writer. */
static int smaps_chunk(struct mlk_writer *w, const struct mlk_smaps *all, size_t nr, size_t *done,
		       size_t *runs)
{
	struct mlk_enc body = {0}, e = {0};
	const uint64_t time_ns = all[*done].time_ns;
	uint64_t records = 0;
	int err = 0;

	while (!err && *done < nr && body.len < SMAPS_BYTES) {
		struct mlk_smaps part = all[*done];
		size_t left = part.nr_pages - *runs;

		part.pages += *runs;
		part.nr_pages = left < SMAPS_RUNS ? left : SMAPS_RUNS;
		if (*runs)
			part.known = 0;
		err = mlk_smaps_encode(&body, &part);
		records++;
		*runs += part.nr_pages;
		if (*runs < all[*done].nr_pages)
			continue;
		*runs = 0;
		++*done;
	}
	if (err) {
		mlk_enc_release(&body);
		return err;
	}
	mlk_enc_uvar(&e, records);
	mlk_enc_bytes(&e, body.buf, body.len);
	e.failed |= body.failed;
	mlk_enc_release(&body);
	return mlk_writer_put_single(w, MLK_CHUNK_SMAPS, time_ns, &e);
}

int mlk_writer_regions(struct mlk_writer *w, const struct mlk_regions *regions)
{
	struct mlk_enc e = {0};
	int err = mlk_regions_encode(&e, regions);

	return err ? err : mlk_writer_put_single(w, MLK_CHUNK_REGIONS, regions->time_ns, &e);
}

int mlk_writer_smaps(struct mlk_writer *w, const struct mlk_smaps *all, size_t nr)
{
	size_t done = 0, runs = 0;
	int err = 0;

	while (!err && done < nr)
		err = smaps_chunk(w, all, nr, &done, &runs);
	return err;
}

int mlk_writer_code_names(struct mlk_writer *w, const struct mlk_code_names *names)
{
	struct mlk_code_names part = *names;
	size_t done = 0;
	int err;

	do {
		struct mlk_enc e = {0};

		part.nr -= done;
		part.names += done;
		err = mlk_code_names_encode(&e, &part, &done);
		if (!err)
			err = mlk_writer_put_single(w, MLK_CHUNK_CODE_NAMES, names->time_ns, &e);
		part.flags &= ~(uint32_t)MLK_CODE_NAMES_ANEW;
	} while (!err && done < part.nr);
	return err;
}
