/* filters_sweep.c - see filters_sweep.h */
#include "record/filter/filters_sweep.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"

#define BATCH	  4096 /* entries read at once */
#define BATCHES	  16   /* in one call */
#define MAX_VALUE 16   /* bytes */

/* As bpf/filter.h has it. */
struct block_key {
	uint64_t addr, tgid;
};

/* What was read at once, and the processes that were recorded then. */
struct batch {
	union {
		struct block_key blocks[BATCH];
		uint32_t tids[BATCH];
	} keys;
	uint8_t values[BATCH * MAX_VALUE];
	uint32_t tgids[EVENT_MAX_TARGETS];
	size_t nr_tgids;
};

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* After a batch was read: a thread that had a block by then is recorded, or has ended. */
static void read_targets(const struct mleak_bpf *skel, struct batch *b)
{
	int fd = bpf_map__fd(skel->maps.targets);
	uint32_t key, *last = NULL;

	b->nr_tgids = 0;
	while (b->nr_tgids < EVENT_MAX_TARGETS && !bpf_map_get_next_key(fd, last, &key)) {
		b->tgids[b->nr_tgids] = key;
		last = &b->tgids[b->nr_tgids++];
	}
	qsort(b->tgids, b->nr_tgids, sizeof(b->tgids[0]), compare);
}

static bool is_recorded(const struct batch *b, uint64_t tgid)
{
	uint32_t key = (uint32_t)tgid;

	return bsearch(&key, b->tgids, b->nr_tgids, sizeof(key), compare) != NULL;
}

/* Take out what is of none any more among the first @nr entries read of the table @fd. */
static void forget(const struct mleak_bpf *skel, struct batch *b, int fd, uint32_t nr)
{
	bool blocks = fd == bpf_map__fd(skel->maps.filter_blocks);

	if (blocks)
		read_targets(skel, b);
	for (uint32_t i = 0; i < nr; i++)
		if (blocks && !is_recorded(b, b->keys.blocks[i].tgid))
			bpf_map_delete_elem(fd, &b->keys.blocks[i]);
		else if (!blocks && syscall(SYS_tkill, b->keys.tids[i], 0) && errno == ESRCH)
			bpf_map_delete_elem(fd, &b->keys.tids[i]);
}

/* Returns false at the end of the table. */
static bool sweep_batch(const struct mleak_bpf *skel, struct filters_sweep *sweep, int fd,
			struct batch *b)
{
	uint32_t nr = BATCH;
	int err = bpf_map_lookup_batch(fd, sweep->inside ? &sweep->at : NULL, &sweep->at, &b->keys,
				       b->values, &nr, NULL);

	sweep->inside = !err;
	if (!err || err == -ENOENT) /* that was the last */
		forget(skel, b, fd, nr);
	return !err;
}

bool filters_sweep(const struct mleak_bpf *skel, struct filters_sweep *sweep)
{
	const struct bpf_map *const tables[FILTERS_SWEEP_TABLES] = {
		skel->maps.filter_blocks, skel->maps.thread_modes, skel->maps.thread_bytes};
	struct batch *b = malloc(sizeof(*b));

	for (int i = 0; b && i < BATCHES && sweep->table < FILTERS_SWEEP_TABLES; i++) {
		int fd = bpf_map__fd(tables[sweep->table]); /* negative: no filter needs it */

		if (fd < 0 || !sweep_batch(skel, sweep, fd, b))
			sweep->table++;
	}
	free(b);
	if (b && sweep->table < FILTERS_SWEEP_TABLES)
		return true;
	memset(sweep, 0, sizeof(*sweep));
	return false;
}
