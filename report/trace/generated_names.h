/* generated_names.h - names of the code that processes generated: CODENAMES chunks, by time
 */
#ifndef REPORT_GENERATED_NAMES_H
#define REPORT_GENERATED_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "format/reader.h"
#include "report/trace/trace_modules.h"

/* Most names of a trace; those beyond are counted. */
#define GENERATED_NAMES_MAX ((size_t)2 << 20)

/* A function: [start, end), whose name is the path of module @number. */
struct generated_name {
	uint64_t start, end;
	uint32_t number;
	uint32_t frame; /* as in struct mlk_code_name */
};

/* What one chunk tells: names[first] and the next. */
struct generated_batch {
	uint32_t tgid;
	uint64_t time_ns; /* from when on they hold */
	bool anew;	  /* and those before do not */
	size_t first, nr;
	size_t order; /* in the trace */
};

/* All of a trace; all zero is none. */
struct generated_names {
	struct generated_name *names;
	size_t nr, room;
	struct generated_batch *batches; /* in the order of the trace, then sorted by process and
					    time */
	size_t nr_batches, batches_room, next_order;
	size_t left_out;
	uint64_t left_out_bytes; /* of their sources, as the recorder told last */
	char *problem;		 /* why, of the first that has such; NULL: none has */
	uint32_t problem_tgid, problem_source;
};

/* Take in a chunk; the names become modules of @images.  Returns 0 or -ENOMEM. */
int generated_names_add(struct generated_names *all, const struct mlk_code_names *chunk,
			struct trace_modules *images);

/* Make ready for what follows, after all were added. */
void generated_names_sort(struct generated_names *all);

/* Which batches of process @tgid there are by @time_ns: a number that only grows with time.  0 with
 * *@known false: it has none at all. */
size_t generated_names_epoch(const struct generated_names *all, uint32_t tgid, uint64_t time_ns,
			     bool *known);

/*
 * The mappings @maps, @nr ascending ones, with those of the functions that @tgid had at that epoch
 * behind them, where they are in generated code: later ones win.  *@out is to be freed.
 * Returns 0 or -ENOMEM.
 */
int generated_names_apply(const struct generated_names *all, uint32_t tgid, size_t epoch,
			  const struct dwunw_mapping *maps, size_t nr, struct dwunw_mapping **out,
			  size_t *nr_out);

/* Release what @all holds. */
void generated_names_release(struct generated_names *all);

#endif
