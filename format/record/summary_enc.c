/* summary_enc.c - see summary.h */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"
#include "format/record/summary.h"
#include "format/record/summary_state.h"

int mlk_summary_new(struct mlk_summary **out, uint64_t start_ns, uint64_t unit)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->start_ns = start_ns;
	(*out)->unit = unit;
	return 0;
}

size_t mlk_summary_events(const struct mlk_summary *s)
{
	return s->nr_events;
}

size_t mlk_summary_bytes(const struct mlk_summary *s)
{
	size_t bytes = 0;

	for (int i = 0; i < MLK_SUM_NR; i++)
		bytes += s->columns[i].len;
	return bytes;
}

void mlk_summary_clear(struct mlk_summary *s)
{
	for (int i = 0; i < MLK_SUM_NR; i++)
		s->columns[i].len = 0;
	mlk_dict_reset(&s->threads);
	mlk_dict_reset(&s->bases);
	s->nr_groups = s->nr_events = s->nr_allocs = 0;
	s->nr_threads = 0;
	s->time_ns = s->addr = s->alloc_id = 0;
}

void mlk_summary_free(struct mlk_summary *s)
{
	if (!s)
		return;
	for (int i = 0; i < MLK_SUM_NR; i++)
		mlk_enc_release(&s->columns[i]);
	mlk_dict_release(&s->threads);
	mlk_dict_release(&s->bases);
	free(s->groups);
	free(s);
}

/* Write the thread's number.  Returns 0 or -ENOMEM. */
static int encode_sum_thread(struct mlk_summary *s, const struct mlk_event *event)
{
	struct mlk_enc *column = &s->columns[MLK_SUM_THREADS];
	uint32_t *number = mlk_dict_at(&s->threads, (uint64_t)event->tgid << 32 | event->tid);

	if (!number)
		return -ENOMEM;
	mlk_enc_uvar(column, *number);
	if (*number)
		return 0;
	*number = ++s->nr_threads;
	mlk_enc_uvar(column, event->tgid);
	mlk_enc_uvar(column, event->tid);
	return 0;
}

/* Times before the start, which there are not, are not rounded well. */
static void encode_sum_time(struct mlk_summary *s, uint64_t time_ns)
{
	const uint64_t since = time_ns - s->start_ns + s->unit / 2;
	const uint64_t rounded = s->start_ns + since - since % s->unit;

	if (!s->nr_events)
		s->first_ns = s->last_ns = s->time_ns = rounded;
	mlk_enc_delta(&s->columns[MLK_SUM_TIMES],
		      (uint64_t)((int64_t)(rounded - s->time_ns) / (int64_t)s->unit), 0);
	s->time_ns = rounded;
	s->last_ns = rounded > s->last_ns ? rounded : s->last_ns;
}

/* What all blocks of a group share, or what a single block has. */
static void encode_sum_facts(struct mlk_summary *s, const struct mlk_event *event, uint32_t stack)
{
	mlk_enc_uvar(&s->columns[MLK_SUM_SIZES], event->size);
	mlk_enc_u8(&s->columns[MLK_SUM_FUNCS], event->func);
	mlk_enc_uvar(&s->columns[MLK_SUM_FLAGS], event->flags);
	mlk_enc_uvar(&s->columns[MLK_SUM_STACKS], stack);
}

/* A record that belongs to no group. */
static void encode_plain(struct mlk_summary *s, const struct mlk_event *event, uint32_t stack)
{
	bool nested = event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED;

	mlk_enc_uvar(&s->columns[MLK_SUM_EVENTS], 0);
	mlk_enc_u8(&s->columns[MLK_SUM_KINDS],
		   (uint8_t)(event->kind | (nested ? MLK_HEAD_NESTED : 0)));
	if (mlk_kind_has_addr(event->kind)) {
		mlk_enc_delta(&s->columns[MLK_SUM_ADDRS], event->addr, s->addr);
		s->addr = event->addr;
	}
	if (event->kind == MLK_ALLOC)
		encode_sum_facts(s, event, stack);
	else if (mlk_kind_has_range(event->kind))
		mlk_enc_uvar(&s->columns[MLK_SUM_SIZES], event->size);
	else if (event->kind == MLK_FORK)
		mlk_enc_uvar(&s->columns[MLK_SUM_SIZES], event->addr);
	if (event->kind == MLK_PAGES)
		mlk_enc_u8(&s->columns[MLK_SUM_FUNCS], event->func);
}

static unsigned int op_of(const struct mlk_event *event)
{
	switch (event->kind) {
	case MLK_ALLOC:
		return MLK_SUM_ALLOC;
	case MLK_FREE:
		return event->flags & MLK_EVENT_NESTED ? MLK_SUM_NESTED_FREE : MLK_SUM_FREE;
	case MLK_RELEASE:
		return MLK_SUM_RELEASE;
	default:
		return MLK_SUM_OPS;
	}
}

/* Begin a group for @event, and write what it is.  Returns 0 or -ENOMEM. */
static int begin_group(struct mlk_summary *s, const struct mlk_event *event, uint32_t stack)
{
	const struct mlk_sum_group group = {
		.base = event->addr >> MLK_PLACE_BITS,
		.size = event->size,
		.stack = stack,
		.flags = event->flags,
		.func = event->func,
		.whole = event->kind == MLK_ALLOC,
	};
	uint64_t before = s->nr_groups ? s->groups[s->nr_groups - 1].base : 0;

	if (grow_array(&s->groups, s->nr_groups, &s->groups_room, sizeof(group)))
		return -ENOMEM;
	s->groups[s->nr_groups++] = group;
	mlk_enc_delta(&s->columns[MLK_SUM_BASES], group.base, before);
	if (group.whole)
		encode_sum_facts(s, event, stack);
	return 0;
}

/* Do the blocks of @group have what @event has? */
static bool is_of_group(const struct mlk_sum_group *group, const struct mlk_event *event,
			uint32_t stack)
{
	return group->size == event->size && group->stack == stack &&
	       group->flags == event->flags && group->func == event->func;
}

/* Write a record of the group that the block's number names. */
static int encode_grouped(struct mlk_summary *s, const struct mlk_event *event, uint32_t stack,
			  unsigned int op)
{
	const uint64_t place = event->addr & ((1u << MLK_PLACE_BITS) - 1);
	uint32_t *number = mlk_dict_at(&s->bases, event->addr >> MLK_PLACE_BITS);
	bool alloc = event->kind == MLK_ALLOC, old;
	struct mlk_sum_group *group;

	if (!number)
		return -ENOMEM;
	old = *number && (!alloc || s->groups[*number - 1].whole);
	if (old && alloc && !is_of_group(&s->groups[*number - 1], event, stack)) {
		encode_plain(s, event, stack);
		return 0;
	}
	mlk_enc_uvar(&s->columns[MLK_SUM_EVENTS],
		     (old ? *number : s->nr_groups + 1) * MLK_SUM_OPS + op);
	if (!old) {
		if (begin_group(s, event, stack))
			return -ENOMEM;
		*number = (uint32_t)s->nr_groups;
	}
	group = &s->groups[*number - 1];
	mlk_enc_delta(&s->columns[MLK_SUM_PLACES], place, mlk_sum_expected(group, alloc));
	group->next = alloc ? place + 1 : place;
	return 0;
}

int mlk_summary_add(struct mlk_summary *s, const struct mlk_event *event, uint32_t stack)
{
	unsigned int op = op_of(event);
	int err;

	if (event->kind == 0 || event->kind >= MLK_KIND_NR || (event->kind == MLK_ALLOC) != !!stack)
		return -EINVAL;
	err = encode_sum_thread(s, event);
	if (err)
		return err;
	encode_sum_time(s, event->time_ns);
	if (op < MLK_SUM_OPS && event->addr & MLK_NUMBER_FLAG)
		err = encode_grouped(s, event, stack, op);
	else
		encode_plain(s, event, stack);
	if (event->kind == MLK_ALLOC) {
		mlk_enc_delta(&s->columns[MLK_SUM_IDS], event->alloc_id, s->alloc_id + 1);
		s->alloc_id = event->alloc_id;
		s->nr_allocs++;
	}
	s->nr_events++;
	for (int i = 0; i < MLK_SUM_NR; i++)
		if (s->columns[i].failed)
			err = -ENOMEM;
	return err;
}

int mlk_summary_encode(struct mlk_enc *payload, unsigned int mode, const struct mlk_summary *s,
		       const struct mlk_unwound *unwound)
{
	struct mlk_enc columns[MLK_SUM_NR];
	int err;

	memcpy(columns, s->columns, sizeof(columns));
	err = mlk_unwound_put_tables(columns, unwound);
	mlk_enc_u8(payload, (uint8_t)(mode | MLK_CODING_2 << 4));
	mlk_enc_uvar(payload, unwound->nr_modules);
	mlk_enc_uvar(payload, unwound->nr_stacks);
	mlk_enc_uvar(payload, s->nr_allocs);
	mlk_enc_uvar(payload, s->unit);
	mlk_enc_columns(payload, columns, MLK_SUM_NR);
	for (int i = 0; i < MLK_UNWOUND_TABLES; i++) {
		payload->failed |= columns[i].failed;
		mlk_enc_release(&columns[i]);
	}
	return err;
}
