/* summary_dec.c - see summary.h; of what is read nothing is believed before it is checked */
#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"
#include "format/record/summary.h"

bool mlk_is_summary(const struct mlk_dec *d)
{
	return d->at < d->end && *d->at >> 4 == MLK_CODING_2;
}

bool mlk_sum_more(const struct mlk_sum_dec *s)
{
	return s->columns[MLK_SUM_EVENTS].at < s->columns[MLK_SUM_EVENTS].end;
}

void mlk_sum_release(struct mlk_sum_dec *s)
{
	free(s->groups);
	free(s->threads);
	*s = (struct mlk_sum_dec){0};
}

static int decode_sum_thread(struct mlk_sum_dec *s, struct mlk_event *event)
{
	struct mlk_dec *column = &s->columns[MLK_SUM_THREADS];
	uint64_t number = mlk_dec_uvar_max(column, s->nr_threads), id;

	if (!number && !column->bad) {
		id = mlk_dec_uvar_max(column, UINT32_MAX) << 32;
		id |= mlk_dec_uvar_max(column, UINT32_MAX);
		if (grow_array(&s->threads, s->nr_threads, &s->threads_room, sizeof(id)))
			return -ENOMEM;
		s->threads[s->nr_threads++] = id;
		number = s->nr_threads;
	}
	if (column->bad)
		return MLK_E_CORRUPT;
	event->tgid = (uint32_t)(s->threads[number - 1] >> 32);
	event->tid = (uint32_t)s->threads[number - 1];
	return 0;
}

static void decode_sum_facts(struct mlk_sum_dec *s, struct mlk_sum_group *group)
{
	group->size = mlk_dec_uvar(&s->columns[MLK_SUM_SIZES]);
	group->func = mlk_dec_u8(&s->columns[MLK_SUM_FUNCS]);
	group->flags = (uint32_t)mlk_dec_uvar_max(&s->columns[MLK_SUM_FLAGS], UINT32_MAX);
	group->stack = (uint32_t)mlk_dec_uvar_max(&s->columns[MLK_SUM_STACKS], s->nr_stacks);
	s->columns[MLK_SUM_STACKS].bad |= !group->stack;
}

static void take_facts(struct mlk_sum_dec *s, const struct mlk_sum_group *group,
		       struct mlk_event *event)
{
	event->size = group->size;
	event->func = group->func;
	event->flags = group->flags;
	s->stack = group->stack;
}

static int decode_plain(struct mlk_sum_dec *s, struct mlk_event *event)
{
	uint8_t head = mlk_dec_u8(&s->columns[MLK_SUM_KINDS]);
	struct mlk_sum_group group;

	event->kind = head & MLK_HEAD_KIND;
	if (!event->kind || event->kind >= MLK_KIND_NR ||
	    head & ~(MLK_HEAD_KIND | MLK_HEAD_NESTED) ||
	    (head & MLK_HEAD_NESTED && event->kind != MLK_FREE))
		return MLK_E_CORRUPT;
	if (head & MLK_HEAD_NESTED)
		event->flags = MLK_EVENT_NESTED;
	if (mlk_kind_has_addr(event->kind))
		event->addr = s->addr = mlk_dec_delta(&s->columns[MLK_SUM_ADDRS], s->addr);
	if (event->kind == MLK_ALLOC) {
		decode_sum_facts(s, &group);
		take_facts(s, &group, event);
	} else if (mlk_kind_has_range(event->kind)) {
		event->size = mlk_dec_uvar(&s->columns[MLK_SUM_SIZES]);
	} else if (event->kind == MLK_FORK) {
		event->addr = mlk_dec_uvar_max(&s->columns[MLK_SUM_SIZES], UINT32_MAX);
	}
	if (event->kind == MLK_PAGES)
		event->func = mlk_dec_u8(&s->columns[MLK_SUM_FUNCS]);
	return 0;
}

/* Read what the next group is, which begins with an ALLOC or not. */
static int read_group(struct mlk_sum_dec *s, bool whole)
{
	uint64_t before = s->nr_groups ? s->groups[s->nr_groups - 1].base : 0;
	struct mlk_sum_group group = {.whole = whole};

	group.base = mlk_dec_delta(&s->columns[MLK_SUM_BASES], before);
	if (whole)
		decode_sum_facts(s, &group);
	if (grow_array(&s->groups, s->nr_groups, &s->groups_room, sizeof(group)))
		return -ENOMEM;
	s->groups[s->nr_groups++] = group;
	return 0;
}

static int decode_grouped(struct mlk_sum_dec *s, uint64_t code, struct mlk_event *event)
{
	static const uint8_t kinds[] = {MLK_ALLOC, MLK_FREE, MLK_RELEASE, MLK_FREE};
	const uint64_t number = code / MLK_SUM_OPS;
	const unsigned int op = code % MLK_SUM_OPS;
	bool alloc = op == MLK_SUM_ALLOC;
	struct mlk_sum_group *group;
	uint64_t place;

	if (!number || number > s->nr_groups + 1)
		return MLK_E_CORRUPT;
	if (number > s->nr_groups && read_group(s, alloc))
		return -ENOMEM;
	group = &s->groups[number - 1];
	place = mlk_dec_delta(&s->columns[MLK_SUM_PLACES], mlk_sum_expected(group, alloc));
	if (place >> MLK_PLACE_BITS || (alloc && !group->whole))
		return MLK_E_CORRUPT;
	group->next = alloc ? place + 1 : place;
	event->kind = kinds[op];
	event->addr = group->base << MLK_PLACE_BITS | place;
	if (alloc)
		take_facts(s, group, event);
	else if (op == MLK_SUM_NESTED_FREE)
		event->flags = MLK_EVENT_NESTED;
	return 0;
}

static bool is_any_bad(const struct mlk_sum_dec *s)
{
	bool bad = false;

	for (int i = MLK_SUM_EVENTS; i < MLK_SUM_NR; i++)
		bad |= s->columns[i].bad;
	return bad;
}

int mlk_sum_next(struct mlk_sum_dec *s, struct mlk_event *event)
{
	uint64_t code = mlk_dec_uvar(&s->columns[MLK_SUM_EVENTS]);
	int err;

	memset(event, 0, offsetof(struct mlk_event, regs));
	err = decode_sum_thread(s, event);
	if (err)
		return err;
	s->time_ns += mlk_dec_delta(&s->columns[MLK_SUM_TIMES], 0) * s->unit;
	event->time_ns = s->time_ns;
	err = code ? decode_grouped(s, code, event) : decode_plain(s, event);
	if (!err && event->kind == MLK_ALLOC)
		event->alloc_id = s->alloc_id =
			mlk_dec_delta(&s->columns[MLK_SUM_IDS], s->alloc_id + 1);
	return err ? err : is_any_bad(s) ? MLK_E_CORRUPT : 0;
}

/* Go back to before the first record. */
static void rewind_summary(struct mlk_sum_dec *s, const struct mlk_dec *columns)
{
	memcpy(s->columns, columns, sizeof(s->columns));
	s->nr_groups = s->nr_threads = 0;
	s->time_ns = s->first_ns;
	s->addr = s->alloc_id = 0;
}

/* Read all records, to have the stacks of the ALLOCs. */
static int read_stacks(struct mlk_sum_dec *s, struct mlk_unwound_room *room,
		       const struct mlk_unwound *u)
{
	struct mlk_event event;
	size_t nr = 0;
	int err = 0;

	while (!err && mlk_sum_more(s)) {
		err = mlk_sum_next(s, &event);
		if (err || event.kind != MLK_ALLOC)
			continue;
		if (nr == u->nr_allocs)
			return MLK_E_CORRUPT;
		room->allocs[nr++] = s->stack;
	}
	return !err && nr != u->nr_allocs ? MLK_E_CORRUPT : err;
}

int mlk_summary_decode(struct mlk_sum_dec *s, struct mlk_dec *d, uint64_t first_ns,
		       struct mlk_arena *text, struct mlk_unwound_room *room, struct mlk_unwound *u)
{
	struct mlk_dec columns[MLK_SUM_NR];
	int err;

	(void)mlk_dec_u8(d);
	*u = (struct mlk_unwound){.first_ns = first_ns};
	u->nr_modules = mlk_dec_uvar(d);
	u->nr_stacks = mlk_dec_uvar(d);
	u->nr_allocs = mlk_dec_uvar(d);
	s->unit = mlk_dec_uvar(d);
	s->first_ns = first_ns;
	/* columns of a later version are behind these, and are left alone */
	mlk_dec_columns(d, columns, MLK_SUM_NR);
	if (d->bad ||
	    u->nr_allocs > (size_t)(columns[MLK_SUM_EVENTS].end - columns[MLK_SUM_EVENTS].at))
		return MLK_E_CORRUPT;
	err = mlk_unwound_get_tables(columns, text, room, u);
	if (err)
		return err;
	s->nr_stacks = (uint32_t)u->nr_stacks;
	rewind_summary(s, columns);
	err = read_stacks(s, room, u);
	rewind_summary(s, columns);
	return err;
}
