/* plan.h - which bytes of a process are to change, and the code beside its functions that they
 * lead to
 *
 * Each file with functions to be changed gets an island near them: for each function a slot, which
 * jumps to a stub of the image, and the function's moved instructions.
 */
#ifndef RECORD_INJECT_PLAN_H
#define RECORD_INJECT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "record/allocator/allocator.h"
#include "record/inject/change.h"
#include "record/inject/image.h"

#define INJECT_ISLAND 8192 /* bytes: of the slots and moved instructions of a file */

/* An island, and the code that it is for. */
struct inject_island {
	uint64_t start, end; /* of the functions to be changed */
	uint64_t at;	     /* where it is to be */
};

/* Of all files of a process: island i is that of the i-th one. */
struct inject_plan {
	size_t nr_islands, nr;
	struct inject_island islands[ALLOCATOR_MAX_OBJECTS];
	struct injected_site sites[INJECTED_MAX_SITES];
	struct inject_change changes[INJECTED_MAX_SITES]; /* of the same numbers */
	uint32_t numbers[INJECTED_MAX_SITES];		  /* that the sites have in the target */
	uint8_t code[ALLOCATOR_MAX_OBJECTS][INJECT_ISLAND];
};

/* Choose where the islands of @plan are, and add them to @maps, all that the process has mapped.
 * Returns 0, -ENOMEM, or -ENOSPC: there is no room within 2 GiB of a function. */
int inject_plan_islands(struct inject_plan *plan, const struct allocators *a, struct maps *maps);

/* What is told of a function: its name, and why its entry cannot be changed; NULL: it can be. */
typedef void inject_plan_tell_fn(void *ctx, const char *name, const char *why);

/*
 * Plan all changes: the islands have their places, and @image is mapped at @base.  @mem is
 * /proc/PID/mem, open for reading.  @tell may be NULL.  Returns how many functions cannot be
 * changed, or -errno.
 */
int inject_plan_sites(struct inject_plan *plan, const struct allocators *a, int mem,
		      const struct image *image, uint64_t base, inject_plan_tell_fn *tell,
		      void *ctx);

/* One in so many bytes is recorded, and nothing else is left out: have malloc and free of the C
 * library lead to the stubs that look at that first.  What others' call themselves would be counted
 * as well: a malloc that calls another allocator's function, and in a program's code what maps,
 * which looks as the program's own. */
void inject_plan_samples(struct inject_plan *plan, const struct allocators *a,
			 const struct image *image, uint64_t base);

/* Set what @island is for: the functions of @o.  Where it is to be is not chosen yet. */
void inject_plan_range(struct inject_island *island, const struct alloc_object *o);

/* As inject_plan_sites(), of the object @o alone, whose island is @island: its sites come behind
 * those that @plan has, and have the numbers that it says. */
int inject_plan_object(struct inject_plan *plan, size_t island, const struct alloc_object *o,
		       int mem, const struct image *image, uint64_t base, inject_plan_tell_fn *tell,
		       void *ctx);

#endif
