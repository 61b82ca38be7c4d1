/* inject.c - see inject.h: how the code gets into the process */
#include "record/inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/base/own_number.h"
#include "record/inject/change.h"
#include "record/inject/inject_state.h"
#include "record/inject/limits.h"
#include "record/inject/reasons.h"
#include "record/inject/remote/remote.h"
#include "record/inject/remove.h"
#include "record/inject/threads.h"
#include "record/inject/turn.h"

int inject_open(struct inject **out, pid_t pid, char *why)
{
	struct inject *i = calloc(1, sizeof(*i));
	struct inject_cost cost = {0};
	const char *reason;
	char path[32];
	int turn = inject_turn_take(pid), err = turn < 0 ? turn : !i ? -ENOMEM : 0;

	*out = NULL;
	if (err)
		give_failure(why, "cannot be changed just now", err);
	else
		err = inject_remove_now(pid, false, &cost, why); /* what another has left */
	if (err) {
		if (turn >= 0)
			close(turn);
		free(i);
		return err;
	}
	*i = (struct inject){.pid = pid,
			     .turn = turn,
			     .mem = -1,
			     .code = {.fd = -1, .there = -1},
			     .rings = {.fd = -1, .there = -1},
			     .cost = cost,
			     .why = why};
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)living_thread(pid));
	reason = image_get(&i->image);
	i->mem = open(path, O_RDWR | O_CLOEXEC);
	err = reason ? -ENOTSUP : i->mem < 0 ? -errno : 0;
	if (reason)
		give_reason(why, reason);
	else if (err)
		reason_denied(why, err);
	else
		err = inject_make_files(i);
	if (err)
		inject_free(i);
	else
		*out = i;
	return err;
}

int inject_rings(struct inject *i)
{
	return fcntl(i->rings.fd, F_DUPFD_CLOEXEC, 0);
}

static void add_mapped(struct injected *to, uint64_t start, uint64_t bytes)
{
	to->mapped[to->nr_mapped++] = (struct preload_range){start, start + bytes};
}

static void describe(const struct inject *i, const struct preload_header *rings,
		     struct injected *to)
{
	const uint64_t first = i->shared + offsetof(struct preload_header, processes);
	const uint64_t facts = i->shared + offsetof(struct preload_header, facts);

	*to = (struct injected){.magic = INJECTED_MAGIC,
				.nonce = rings->nonce,
				.memory = i->base + i->image.all_bytes,
				.settings = {.sizes = rings->sizes,
					     .stack_limit = rings->stack_limit,
					     .clock = rings->clock,
					     .block_ns = rings->block_ns,
					     .filter = rings->filter},
				.state = {.ready = true,
					  .pid = (uint32_t)own_number_of(i->pid, i->pid),
					  .program = rings->processes[0].program,
					  .process = (struct preload_process *)first,
					  .facts = (struct preload_facts *)facts,
					  .own = {i->base, i->base + i->image.text_bytes}},
				.code = i->a->code,
				.nr_sites = (uint32_t)i->plan.nr};
	add_mapped(to, i->base, block_bytes(i));
	add_mapped(to, i->shared, i->shared_bytes);
	for (size_t n = 0; n < i->plan.nr_islands; n++)
		add_mapped(to, i->plan.islands[n].at, INJECT_ISLAND);
	to->nr_first_mapped = to->nr_mapped;
	to->nr_first_sites = to->nr_sites;
	memcpy(to->sites, i->plan.sites, i->plan.nr * sizeof(to->sites[0]));
}

/* Write the file of the code, for good.  Returns 0 or -errno. */
static int write_code(const struct inject *i, const struct injected *injected)
{
	const struct image *m = &i->image;
	const size_t bytes = m->text_bytes + m->data_bytes;
	const uint64_t islands = i->plan.nr_islands * INJECT_ISLAND;

	if (pwrite(i->code.fd, m->bytes, bytes, 0) != (ssize_t)bytes ||
	    pwrite(i->code.fd, injected, sizeof(*injected), (off_t)m->injected) !=
		    (ssize_t)sizeof(*injected) ||
	    pwrite(i->code.fd, i->plan.code, islands, (off_t)island_offset(i, 0)) !=
		    (ssize_t)islands ||
	    fcntl(i->code.fd, F_ADD_SEALS,
		  F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -errno;
	return 0;
}

/* The first function that cannot be changed. */
struct refused {
	const char *name, *why;
};

static void note_refused(void *ctx, const char *name, const char *why)
{
	struct refused *r = ctx;

	if (why && !r->why)
		*r = (struct refused){name, why};
}

/* Is one in so many bytes recorded, and nothing else left out? */
static bool is_sample_of_bytes(const struct preload_filter *f)
{
	return f->on && f->samples && f->by_bytes && !f->begin && !f->min_size &&
	       f->max_size == UINT64_MAX && !f->by_thread;
}

/* With all places known: the changes, and what lies at those places. */
static int prepare(struct inject *i, const struct preload_header *rings)
{
	char *why = i->why;
	struct injected *injected = aligned_alloc(_Alignof(struct injected), sizeof(*injected));
	struct refused refused = {0};
	int err = injected ? inject_plan_sites(&i->plan, i->a, i->mem, &i->image, i->base,
					       note_refused, &refused)
			   : -ENOMEM;

	if (!err && is_sample_of_bytes(&rings->filter))
		inject_plan_samples(&i->plan, i->a, &i->image, i->base);
	if (err > 0) {
		snprintf(why, INJECT_WHY, "has a function %s that cannot be changed: %s",
			 refused.name, refused.why);
		err = -ENOTSUP;
	} else if (!err) {
		describe(i, rings, injected);
		err = inject_threads_describe(i->pid, i->mem, &i->maps, injected, &i->cost, why);
		if (!err) {
			err = write_code(i, injected);
			if (err)
				give_failure(why, "cannot have the code written", err);
		}
	} else {
		give_failure(why, "cannot be read", err);
	}
	free(injected);
	return err;
}

/* All is there: begin.  Returns 0 or -errno. */
static int change(struct inject *i)
{
	char *why = i->why;
	const struct inject_change_opts opts = {.pid = i->pid, .mem = i->mem, .maps = &i->maps};
	int err = 0;

	if (pwrite(i->mem, &i->shared, sizeof(i->shared), (off_t)(i->base + i->image.own)) !=
	    (ssize_t)sizeof(i->shared))
		err = -errno;
	if (!err)
		err = inject_change(&opts, i->plan.changes, i->plan.nr, &i->cost);
	if (err == -EBUSY)
		give_reason(why, "has a thread that stays where its code would be changed");
	else if (err == -ETIME)
		give_reason(why, REASON_RUNS_ON);
	else if (err == -EILSEQ)
		give_reason(why, "has code that something else has just changed");
	else if (err)
		give_failure(why, "cannot be changed", err);
	return err;
}

/* Does CLOCK_MONOTONIC, if times are taken by it, count there as it does here? */
static int check_clock(struct inject *i, const struct preload_header *rings)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)living_thread(i->pid));
	if (rings->clock != PRELOAD_CLOCK_MONOTONIC || stat(path, &theirs) ||
	    stat("/proc/self/ns/time", &ours) || ours.st_ino == theirs.st_ino)
		return 0;
	give_reason(i->why, "has a clock of its own (a time namespace), and no other is known here "
			    "that can be trusted");
	return -ENOTSUP;
}

static int put(struct inject *i, const struct preload_header *rings)
{
	const struct inject_needs needs = {.bytes = block_bytes(i) + i->shared_bytes,
					   .own_bytes = i->image.memory_bytes,
					   .rings = &rings->sizes};
	int err = inject_check_limits(i->pid, &needs, i->why);

	if (!err)
		err = check_clock(i, rings);
	if (!err)
		err = inject_find_islands(i);

	if (!err && ftruncate(i->code.fd, (off_t)island_offset(i, i->plan.nr_islands))) {
		err = -errno;
		give_failure(i->why, "cannot have a file of that size", err);
	}
	if (!err)
		err = inject_take_places(i);
	if (!err)
		err = prepare(i, rings);
	if (!err)
		err = inject_fill_places(i);
	if (!err)
		err = change(i);
	return err;
}

int inject_put(struct inject *i, const struct allocators *a, const struct preload_header *rings,
	       size_t bytes, struct inject_cost *cost, char *why)
{
	char removed[INJECT_WHY];
	int err;

	i->shared_bytes = bytes;
	i->why = why;
	i->a = a;
	err = put(i, rings);
	if (err)
		inject_remove_now(i->pid, true, &i->cost, removed);
	*cost = i->cost;
	close(i->turn);
	i->turn = -1;
	return err;
}

void inject_free(struct inject *i)
{
	if (!i)
		return;
	if (i->turn >= 0)
		close(i->turn);
	if (i->mem >= 0)
		close(i->mem);
	if (i->code.fd >= 0)
		close(i->code.fd);
	if (i->rings.fd >= 0)
		close(i->rings.fd);
	maps_release(&i->maps);
	free(i);
}
