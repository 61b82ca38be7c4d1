/* summary.h - events without registers and stacks, and what their stacks were unwound to: the
 * payload of an EVENTS chunk in coding 2, doc/trace-format.md 4.4.4 */
#ifndef MLK_SUMMARY_H
#define MLK_SUMMARY_H

#include "format/chunk/codec.h"
#include "format/event/dict.h"
#include "format/record/unwound.h"
#include "format/summary.h"

/* The columns of the payload, in their order; those before are of the stacks. */
enum mlk_summary_column {
	MLK_SUM_EVENTS = MLK_UNWOUND_TABLES,
	MLK_SUM_PLACES,
	MLK_SUM_BASES,
	MLK_SUM_SIZES,
	MLK_SUM_FUNCS,
	MLK_SUM_FLAGS,
	MLK_SUM_STACKS,
	MLK_SUM_TIMES,
	MLK_SUM_THREADS,
	MLK_SUM_IDS,
	MLK_SUM_KINDS,
	MLK_SUM_ADDRS,
	MLK_SUM_NR,
};

/* What a record of a group is; its code is MLK_SUM_OPS times the group's number and this. */
enum { MLK_SUM_ALLOC, MLK_SUM_FREE, MLK_SUM_RELEASE, MLK_SUM_NESTED_FREE, MLK_SUM_OPS };

/* A group: blocks of one stack, function and size. */
struct mlk_sum_group {
	uint64_t base; /* the addresses' bits above their places */
	uint64_t next; /* the place that an ALLOC is expected to have; a FREE has the one below */
	uint64_t size;
	uint32_t stack, flags;
	uint8_t func;
	bool whole; /* size, stack, flags and func are known */
};

/* The place that a record of @group is expected to have. */
static inline uint64_t mlk_sum_expected(const struct mlk_sum_group *group, bool alloc)
{
	return alloc ? group->next : group->next - 1;
}

/* Append @summary and the stacks @unwound of its ALLOCs, of which the numbers of these are not
 * used, to @payload, whose ->failed is set if memory runs out.  @mode is enum mlk_stack_mode.
 * Returns 0 or -EINVAL: a number does not fit the others, or a path is too long. */
int mlk_summary_encode(struct mlk_enc *payload, unsigned int mode,
		       const struct mlk_summary *summary, const struct mlk_unwound *unwound);

/* A payload that is being read; all zero before. */
struct mlk_sum_dec {
	struct mlk_dec columns[MLK_SUM_NR];
	struct mlk_sum_group *groups; /* number 1 first */
	size_t nr_groups, groups_room;
	uint64_t *threads; /* number 1 first: tgid above tid */
	size_t nr_threads, threads_room;
	uint64_t first_ns, unit, time_ns, addr, alloc_id;
	uint32_t nr_stacks;
	uint32_t stack; /* of the ALLOC read last */
};

/* Is @d a payload of coding 2? */
bool mlk_is_summary(const struct mlk_dec *d);

/* Read the stacks of the payload @d of a chunk whose first time is @first_ns into @room, as
 * mlk_unwound_decode() does, with the stack of each ALLOC.  Then records can be read by
 * mlk_sum_next().  Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_summary_decode(struct mlk_sum_dec *s, struct mlk_dec *d, uint64_t first_ns,
		       struct mlk_arena *text, struct mlk_unwound_room *room,
		       struct mlk_unwound *unwound);

/* Are there more records? */
bool mlk_sum_more(const struct mlk_sum_dec *s);

/* Read the next record; of @event nothing from regs on is changed.  Returns 0, MLK_E_CORRUPT or
 * -ENOMEM. */
int mlk_sum_next(struct mlk_sum_dec *s, struct mlk_event *event);

/* Free what reading took. */
void mlk_sum_release(struct mlk_sum_dec *s);

#endif
