/* address_spaces.h - which address space an event happened in: the snapshots of the maps, by time
 */
#ifndef REPORT_ADDRESS_SPACES_H
#define REPORT_ADDRESS_SPACES_H

#include "report/base/hash_index.h"
#include "report/trace/generated_names.h"
#include "report/trace/named_spaces.h"
#include "report/trace/trace_modules.h"

/* Most executable mappings that all snapshots of a trace may have together, where equal snapshots
 * count once (but as one mapping each).  Real programs have some hundreds. */
#define SPACES_MAX_MAPPINGS ((size_t)4 << 20)

/* From when on a process had a layout. */
struct maps_snapshot {
	uint32_t tgid;
	uint32_t space; /* its number */
	uint64_t time_ns;
	size_t order; /* in the trace: of two with one time, the later holds */
};

/* The layouts of all processes. */
struct address_spaces {
	struct maps_snapshot
		*snapshots; /* in the order of the trace, then sorted by process and time */
	size_t nr_snapshots, snapshots_room, next_order;
	INTERN_OF(struct space); /* distinct; .maps are its executable mappings until it is built */
	size_t nr_mappings;	 /* of all, and one for each snapshot */
	size_t ignored;		 /* snapshots */
	bool grows;		 /* the trace is being written: more snapshots may come later */
	bool *used;		 /* by number of images */
	size_t used_room;
	struct space empty;
	/* What the kernel has mapped, in a trace of its memory, which is in all address spaces;
	 * owned unless shared. */
	struct dwunw_mapping *kernel;
	size_t nr_kernel;
	size_t nr_copied;      /* of these, into all spaces */
	uint32_t kernel_space; /* its number; of none: UINT32_MAX */
	const struct trace_modules *images;
	struct dwunw *dw;
	/* Of the code that processes generated; those of shared, if that is not NULL. */
	struct generated_names names;
	struct named_spaces named;	     /* layouts with these */
	const struct address_spaces *shared; /* whose snapshots and maps these are, or NULL */
};

/* No snapshots yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int address_spaces_new(struct address_spaces **out);

/*
 * Take in a snapshot.  Its executable mappings are copied, their modules noted in @images; those
 * that end before they start are left out.  Beyond SPACES_MAX_MAPPINGS it is ignored and counted.
 * Returns 0 or -ENOMEM.
 */
int address_spaces_add(struct address_spaces *spaces, const struct mlk_maps *maps,
		       struct trace_modules *images);

/* Take in names of code that a process generated.  Returns 0 or -ENOMEM. */
int address_spaces_add_names(struct address_spaces *spaces, const struct mlk_code_names *names,
			     struct trace_modules *images);

/* What equal layouts have in common: of their mappings. */
uint64_t address_spaces_hash(const struct space *space);

/* Forget the snapshots of which @is_past() says so, with @arg.  This and the next one are for
 * spaces that grow; layouts that no snapshot has any more are released. */
void address_spaces_forget(struct address_spaces *spaces,
			   bool (*is_past)(void *arg, uint32_t tgid, uint64_t time_ns), void *arg);

/* There are no more events before @time_ns: forget the snapshots that another one of the same
 * process has replaced by then.  After address_spaces_prepare(). */
void address_spaces_forget_replaced(struct address_spaces *spaces, uint64_t time_ns);

/* Has process @tgid a snapshot? */
bool address_spaces_knows(const struct address_spaces *spaces, uint32_t tgid);

/* Make ready for address_spaces_find(), after address_spaces_add() and after
 * trace_modules_load() of the same @images; once, unless the spaces grow.  @images and @dw must
 * outlive @spaces.  Returns 0 or -ENOMEM. */
int address_spaces_prepare(struct address_spaces *spaces, const struct trace_modules *images,
			   struct dwunw *dw);

/*
 * Find the space of process @tgid at @time_ns (CLOCK_MONOTONIC): of the last snapshot that is not
 * later, else of the first.  A process without any has a space without mappings.
 * *@out is valid until a snapshot is forgotten or address_spaces_free(), and the same for equal
 * layouts; NULL on failure.
 * Returns 0 or -ENOMEM.
 */
int address_spaces_find(struct address_spaces *spaces, uint32_t tgid, uint64_t time_ns,
			const struct space **out);

/*
 * The same spaces for @dw, which has the modules of the unwinder of @spaces, as dwunw_clone() makes
 * it; for another thread.  After address_spaces_prepare(), and in place of address_spaces_find() in
 * @spaces, which no thread may change then; it and @dw must outlive the copy.  *@out is NULL on
 * failure.  Returns 0 or -ENOMEM.
 */
int address_spaces_share(struct address_spaces **out, const struct address_spaces *spaces,
			 struct dwunw *dw);

/* Whether module @number of the images given to address_spaces_add() is mapped executable in a
 * snapshot. */
bool address_spaces_use(const struct address_spaces *spaces, uint32_t number);

/* Release @spaces; NULL is allowed. */
void address_spaces_free(struct address_spaces *spaces);

#endif
