/* unwound.c - see unwound.h; of what is read nothing is believed before it is checked */
#include "format/record/unwound.h"

#include <errno.h>
#include <stdlib.h>

#include "format/event/events.h"
#include "format/record/records.h"

/* The columns of the payload, in their order. */
enum {
	COL_MODULES,
	COL_CALLERS,
	COL_CODE, /* in which module */
	COL_PCS,
	COL_FLAGS,
	COL_ALLOCS = MLK_UNWOUND_TABLES,
	COL_NR,
};

/* Of an ALLOC's column: the stack that came after the one before it the last time. */
#define AS_LAST_TIME 0

/* Do the numbers of @stack, which is number @number, fit? */
static bool is_known(const struct mlk_unwound *u, uint32_t number)
{
	const struct mlk_unwound_stack *stack = &u->stacks[number - 1];

	return stack->caller < number && stack->module <= u->nr_modules;
}

static bool is_whole(const struct mlk_unwound *u)
{
	bool whole = u->nr_stacks < UINT32_MAX;

	for (size_t i = 0; i < u->nr_modules; i++)
		whole &=
			!mlk_str_too_long(u->modules[i].path) && u->modules[i].id.len <= MLK_MAX_ID;
	for (uint32_t number = 1; whole && number <= u->nr_stacks; number++)
		whole = is_known(u, number);
	return whole;
}

static bool knows_allocs(const struct mlk_unwound *u)
{
	bool known = true;

	for (size_t i = 0; known && i < u->nr_allocs; i++)
		known = u->allocs[i] && u->allocs[i] <= u->nr_stacks;
	return known;
}

static void encode_stacks(struct mlk_enc *columns, const struct mlk_unwound *u, uint64_t *pcs)
{
	for (size_t i = 0; i < u->nr_stacks; i++) {
		const struct mlk_unwound_stack *stack = &u->stacks[i];

		if (!stack->caller) { /* no frame */
			mlk_enc_uvar(&columns[COL_CALLERS], 0);
			mlk_enc_uvar(&columns[COL_FLAGS], stack->flags);
			continue;
		}
		mlk_enc_uvar(&columns[COL_CALLERS], i + 1 - stack->caller);
		mlk_enc_uvar(&columns[COL_CODE], stack->module);
		mlk_enc_delta(&columns[COL_PCS], stack->pc, pcs[stack->module]);
		mlk_enc_uvar(&columns[COL_FLAGS], stack->flags);
		pcs[stack->module] = stack->pc;
	}
}

static void encode_allocs(struct mlk_enc *column, const struct mlk_unwound *u, uint32_t *next)
{
	uint32_t before = 0;

	for (size_t i = 0; i < u->nr_allocs; i++) {
		uint32_t number = u->allocs[i];

		mlk_enc_uvar(column, next[before] == number ? AS_LAST_TIME : number);
		next[before] = number;
		before = number;
	}
}

int mlk_unwound_put_tables(struct mlk_enc *columns, const struct mlk_unwound *u)
{
	uint64_t *pcs = calloc(u->nr_modules + 1, sizeof(*pcs));
	bool whole = is_whole(u);

	for (size_t i = 0; whole && i < u->nr_modules; i++) {
		mlk_enc_id(&columns[COL_MODULES], &u->modules[i].id);
		mlk_enc_str(&columns[COL_MODULES], u->modules[i].path);
		mlk_enc_u64(&columns[COL_MODULES], u->modules[i].bias);
	}
	if (whole && pcs)
		encode_stacks(columns, u, pcs);
	columns[COL_MODULES].failed |= !pcs;
	free(pcs);
	return whole ? 0 : -EINVAL;
}

int mlk_unwound_encode(struct mlk_enc *payload, const struct mlk_unwound *u, struct mlk_dec *events)
{
	struct mlk_enc columns[COL_NR] = {{0}};
	uint32_t *next = calloc(u->nr_stacks + 1, sizeof(*next));
	bool whole = knows_allocs(u) && !mlk_unwound_put_tables(columns, u);

	if (whole && next)
		encode_allocs(&columns[COL_ALLOCS], u, next);
	mlk_enc_u32(payload, u->events_crc);
	mlk_enc_u64(payload, u->first_ns);
	mlk_enc_uvar(payload, u->nr_modules);
	mlk_enc_uvar(payload, u->nr_stacks);
	mlk_enc_uvar(payload, u->nr_allocs);
	mlk_enc_columns(payload, columns, COL_NR);
	payload->failed |= !next;
	for (int i = 0; i < COL_NR; i++) {
		payload->failed |= columns[i].failed;
		mlk_enc_release(&columns[i]);
	}
	free(next);
	return whole ? mlk_events_copy_heads(events, payload) : -EINVAL;
}

/* Room for @nr things of @size bytes in *@list, which has room for *@room; its old contents are
 * lost.
 */
static int make_room(void *list, size_t *room, size_t nr, size_t size)
{
	void **at = list, *made;

	if (*at && nr <= *room)
		return 0;
	made = calloc(nr + 1, size);
	if (!made)
		return -ENOMEM;
	free(*at);
	*at = made;
	*room = nr;
	return 0;
}

static void decode_modules(struct mlk_dec *d, struct mlk_arena *text, struct mlk_unwound_room *room,
			   size_t nr)
{
	for (size_t i = 0; i < nr && !d->bad; i++) {
		struct mlk_unwound_module *module = &room->modules[i];

		mlk_dec_id(d, &module->id);
		module->path = mlk_decode_str(d, text);
		module->bias = mlk_dec_u64(d);
	}
}

/* Read stack @number; @room has those before. */
static bool decode_stack(struct mlk_dec *columns, struct mlk_unwound_room *room,
			 const struct mlk_unwound *u, uint32_t number)
{
	struct mlk_unwound_stack *stack = &room->stacks[number - 1];
	uint64_t back = mlk_dec_uvar_max(&columns[COL_CALLERS], number - 1);

	*stack = (struct mlk_unwound_stack){0};
	stack->flags = (uint32_t)mlk_dec_uvar_max(&columns[COL_FLAGS], UINT32_MAX);
	if (!back)
		return true;
	stack->caller = number - (uint32_t)back;
	stack->module = (uint32_t)mlk_dec_uvar_max(&columns[COL_CODE], u->nr_modules);
	stack->pc = mlk_dec_delta(&columns[COL_PCS], room->pcs[stack->module]);
	room->pcs[stack->module] = stack->pc;
	room->depths[number] = (uint16_t)(room->depths[stack->caller] + 1);
	return room->depths[number] <= MLK_MAX_FRAMES;
}

static bool decode_stacks(struct mlk_dec *columns, struct mlk_unwound_room *room,
			  const struct mlk_unwound *u)
{
	bool bad = false;

	memset(room->pcs, 0, (u->nr_modules + 1) * sizeof(*room->pcs));
	memset(room->depths, 0, (u->nr_stacks + 1) * sizeof(*room->depths));
	for (uint32_t number = 1; number <= u->nr_stacks && !bad; number++)
		bad = !decode_stack(columns, room, u, number);
	for (int i = COL_CALLERS; i < MLK_UNWOUND_TABLES; i++)
		bad |= columns[i].bad;
	return !bad;
}

static bool decode_allocs(struct mlk_dec *column, struct mlk_unwound_room *room,
			  const struct mlk_unwound *u)
{
	uint32_t before = 0;

	memset(room->next, 0, (u->nr_stacks + 1) * sizeof(*room->next));
	for (size_t i = 0; i < u->nr_allocs; i++) {
		uint32_t number = (uint32_t)mlk_dec_uvar_max(column, u->nr_stacks);

		if (number == AS_LAST_TIME)
			number = room->next[before];
		if (!number)
			return false; /* or there was no more, or none that came before */
		room->next[before] = number;
		room->allocs[i] = before = number;
	}
	return !column->bad;
}

static size_t left(const struct mlk_dec *d)
{
	return (size_t)(d->end - d->at);
}

static int make_rooms(struct mlk_unwound_room *r, const struct mlk_unwound *u)
{
	if (make_room(&r->modules, &r->nr_modules, u->nr_modules, sizeof(*r->modules)) ||
	    make_room(&r->pcs, &r->nr_pcs, u->nr_modules, sizeof(*r->pcs)) ||
	    make_room(&r->stacks, &r->nr_stacks, u->nr_stacks, sizeof(*r->stacks)) ||
	    make_room(&r->depths, &r->nr_depths, u->nr_stacks, sizeof(*r->depths)) ||
	    make_room(&r->next, &r->nr_next, u->nr_stacks, sizeof(*r->next)) ||
	    make_room(&r->allocs, &r->nr_allocs, u->nr_allocs, sizeof(*r->allocs)))
		return -ENOMEM;
	return 0;
}

int mlk_unwound_get_tables(struct mlk_dec *columns, struct mlk_arena *text,
			   struct mlk_unwound_room *room, struct mlk_unwound *u)
{
	int err;

	/* no memory for counts that cannot be true: each takes a byte at least */
	if (u->nr_modules > left(&columns[COL_MODULES]) ||
	    u->nr_stacks > left(&columns[COL_CALLERS]))
		return MLK_E_CORRUPT;
	err = make_rooms(room, u);
	if (err)
		return err;
	decode_modules(&columns[COL_MODULES], text, room, u->nr_modules);
	u->modules = room->modules;
	u->stacks = room->stacks;
	u->allocs = room->allocs;
	return columns[COL_MODULES].bad || !decode_stacks(columns, room, u) ? MLK_E_CORRUPT : 0;
}

int mlk_unwound_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_unwound_room *room,
		       struct mlk_unwound *u)
{
	struct mlk_dec columns[COL_NR];
	int err;

	u->events_crc = mlk_dec_u32(d);
	u->first_ns = mlk_dec_u64(d);
	u->nr_modules = mlk_dec_uvar(d);
	u->nr_stacks = mlk_dec_uvar(d);
	u->nr_allocs = mlk_dec_uvar(d);
	/* columns of a later version come before what follows */
	(void)mlk_dec_bytes(d, mlk_dec_columns(d, columns, COL_NR));
	if (d->bad || u->nr_allocs > left(&columns[COL_ALLOCS]))
		return MLK_E_CORRUPT;
	err = mlk_unwound_get_tables(columns, text, room, u);
	if (!err && !decode_allocs(&columns[COL_ALLOCS], room, u))
		err = MLK_E_CORRUPT;
	return err;
}

void mlk_unwound_release(struct mlk_unwound_room *room)
{
	free(room->modules);
	free(room->stacks);
	free(room->allocs);
	free(room->pcs);
	free(room->depths);
	free(room->next);
	*room = (struct mlk_unwound_room){0};
}
