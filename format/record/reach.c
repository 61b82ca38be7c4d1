/* reach.c - see reach.h */
#include "format/record/reach.h"

#include <errno.h>
#include <stdlib.h>

#include "format/record/records.h"

#define COLUMNS	   2 /* of words: addresses, values */
#define MIN_RANGE  7 /* bytes that one takes at least */
#define MIN_THREAD 3
#define MIN_ROOT   3

int mlk_pointers_encode(struct mlk_enc *e, const struct mlk_pointers *pointers)
{
	struct mlk_enc columns[COLUMNS] = {{0}};
	struct mlk_pointer before = {0};
	int err = pointers->nr > MLK_MAX_POINTERS ? -EINVAL : 0;

	for (size_t i = 0; i < pointers->nr && !err; i++) {
		const struct mlk_pointer *word = &pointers->words[i];

		if (word->address % 8 || (i && word->address <= before.address)) {
			err = -EINVAL;
			break;
		}
		mlk_enc_uvar(&columns[0], (word->address - before.address) / 8);
		mlk_enc_delta(&columns[1], word->value, before.value);
		before = *word;
	}
	if (!err) {
		mlk_enc_uvar(e, pointers->tgid);
		mlk_enc_uvar(e, pointers->pass);
		mlk_enc_uvar(e, pointers->nr);
		mlk_enc_columns(e, columns, COLUMNS);
	}
	for (size_t i = 0; i < COLUMNS; i++)
		mlk_enc_release(&columns[i]);
	return err;
}

/* Room for @nr in *@room.  Returns 0 or -ENOMEM. */
static int make_room(void **room, size_t nr, size_t size)
{
	void *bigger = realloc(*room, (nr + 1) * size);

	if (!bigger)
		return -ENOMEM;
	*room = bigger;
	return 0;
}

/* The number of things that follow, of which each has @least bytes and there are @most; too many
 * for what is left is bad. */
static size_t count_of(struct mlk_dec *d, uint64_t most, size_t least)
{
	uint64_t nr = mlk_dec_uvar_max(d, most);

	if (!d->bad && nr > (uint64_t)(d->end - d->at) / least)
		d->bad = true;
	return d->bad ? 0 : (size_t)nr;
}

int mlk_pointers_decode(struct mlk_dec *d, struct mlk_reach_room *room,
			struct mlk_pointers *pointers)
{
	struct mlk_dec columns[COLUMNS];
	struct mlk_pointer word = {0};

	pointers->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pointers->pass = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pointers->nr = count_of(d, MLK_MAX_POINTERS, COLUMNS);
	(void)mlk_dec_columns(d, columns, COLUMNS);
	if (d->bad)
		return MLK_E_CORRUPT;
	if (make_room((void **)&room->words, pointers->nr, sizeof(word)))
		return -ENOMEM;
	for (size_t i = 0; i < pointers->nr; i++) {
		uint64_t step = mlk_dec_uvar_max(&columns[0], (UINT64_MAX - word.address) / 8);

		word.address += step * 8;
		word.value = mlk_dec_delta(&columns[1], word.value);
		if (columns[0].bad || columns[1].bad || (i && !step))
			return MLK_E_CORRUPT;
		room->words[i] = word;
	}
	pointers->words = room->words;
	return 0;
}

static void encode_threads(struct mlk_enc *e, const struct mlk_pass *pass)
{
	mlk_enc_uvar(e, pass->nr_threads);
	for (size_t i = 0; i < pass->nr_threads; i++) {
		const struct mlk_reach_thread *t = &pass->threads[i];
		const uint32_t known = t->known & ((1u << MLK_REACH_REGS) - 1);

		mlk_enc_uvar(e, t->tid);
		mlk_enc_u8(e, t->how);
		mlk_enc_uvar(e, known);
		for (int reg = 0; reg < MLK_REACH_REGS; reg++)
			if (known >> reg & 1)
				mlk_enc_uvar(e, t->regs[reg]);
	}
}

int mlk_pass_encode(struct mlk_enc *e, const struct mlk_pass *pass)
{
	uint64_t before = 0;

	if (pass->nr_ranges > MLK_MAX_RANGES || pass->nr_threads > MLK_MAX_RANGES ||
	    pass->nr_roots > MLK_MAX_RANGES || pass->end_ns < pass->begin_ns)
		return -EINVAL;
	for (size_t i = 0; i < pass->nr_ranges; before = pass->ranges[i++].end)
		if (pass->ranges[i].start < before || pass->ranges[i].end < pass->ranges[i].start ||
		    mlk_str_too_long(pass->ranges[i].path))
			return -EINVAL;
	mlk_enc_uvar(e, pass->tgid);
	mlk_enc_uvar(e, pass->pass);
	mlk_enc_uvar(e, pass->snapshot);
	mlk_enc_uvar(e, pass->flags);
	mlk_enc_u64(e, pass->begin_ns);
	mlk_enc_uvar(e, pass->end_ns - pass->begin_ns);
	mlk_enc_uvar(e, pass->words);
	mlk_enc_uvar(e, pass->nr_ranges);
	before = 0;
	for (size_t i = 0; i < pass->nr_ranges; i++) {
		const struct mlk_range *range = &pass->ranges[i];

		mlk_enc_uvar(e, range->start - before);
		mlk_enc_uvar(e, range->end - range->start);
		mlk_enc_u8(e, (uint8_t)range->perms);
		mlk_enc_uvar(e, range->offset);
		mlk_enc_str(e, range->path);
		mlk_enc_uvar(e, range->absent);
		mlk_enc_uvar(e, range->unread);
		before = range->end;
	}
	encode_threads(e, pass);
	mlk_enc_uvar(e, pass->nr_roots);
	for (size_t i = 0; i < pass->nr_roots; i++) {
		mlk_enc_u8(e, pass->roots[i].kind);
		mlk_enc_uvar(e, pass->roots[i].number);
		mlk_enc_uvar(e, pass->roots[i].value);
	}
	return 0;
}

static int decode_ranges(struct mlk_dec *d, struct mlk_arena *text, struct mlk_reach_room *room,
			 struct mlk_pass *pass)
{
	uint64_t before = 0;

	pass->nr_ranges = count_of(d, MLK_MAX_RANGES, MIN_RANGE);
	if (make_room((void **)&room->ranges, pass->nr_ranges, sizeof(*room->ranges)))
		return -ENOMEM;
	for (size_t i = 0; i < pass->nr_ranges && !d->bad; i++) {
		struct mlk_range *range = &room->ranges[i];

		range->start = before + mlk_dec_uvar_max(d, UINT64_MAX - before);
		range->end = range->start + mlk_dec_uvar_max(d, UINT64_MAX - range->start);
		range->perms = mlk_dec_u8(d);
		range->offset = mlk_dec_uvar(d);
		range->path = mlk_decode_str(d, text);
		range->absent = mlk_dec_uvar_max(d, range->end - range->start);
		range->unread = mlk_dec_uvar_max(d, range->end - range->start - range->absent);
		before = range->end;
	}
	pass->ranges = room->ranges;
	return 0;
}

static int decode_threads(struct mlk_dec *d, struct mlk_reach_room *room, struct mlk_pass *pass)
{
	pass->nr_threads = count_of(d, MLK_MAX_RANGES, MIN_THREAD);
	if (make_room((void **)&room->threads, pass->nr_threads, sizeof(*room->threads)))
		return -ENOMEM;
	for (size_t i = 0; i < pass->nr_threads && !d->bad; i++) {
		struct mlk_reach_thread *t = &room->threads[i];

		*t = (struct mlk_reach_thread){0};
		t->tid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
		t->how = mlk_dec_u8(d);
		t->known = (uint32_t)mlk_dec_uvar_max(d, (1u << MLK_REACH_REGS) - 1);
		for (int reg = 0; reg < MLK_REACH_REGS; reg++)
			if (t->known >> reg & 1)
				t->regs[reg] = mlk_dec_uvar(d);
	}
	pass->threads = room->threads;
	return 0;
}

static int decode_roots(struct mlk_dec *d, struct mlk_reach_room *room, struct mlk_pass *pass)
{
	pass->nr_roots = count_of(d, MLK_MAX_RANGES, MIN_ROOT);
	if (make_room((void **)&room->roots, pass->nr_roots, sizeof(*room->roots)))
		return -ENOMEM;
	for (size_t i = 0; i < pass->nr_roots && !d->bad; i++) {
		room->roots[i].kind = mlk_dec_u8(d);
		room->roots[i].number = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
		room->roots[i].value = mlk_dec_uvar(d);
	}
	pass->roots = room->roots;
	return 0;
}

int mlk_pass_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_reach_room *room,
		    struct mlk_pass *pass)
{
	int err;

	pass->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pass->pass = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pass->snapshot = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pass->flags = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	pass->begin_ns = mlk_dec_u64(d);
	pass->end_ns = pass->begin_ns + mlk_dec_uvar_max(d, UINT64_MAX - pass->begin_ns);
	pass->words = mlk_dec_uvar(d);
	err = decode_ranges(d, text, room, pass);
	if (!err)
		err = decode_threads(d, room, pass);
	if (!err)
		err = decode_roots(d, room, pass);
	return err ? err : d->bad ? MLK_E_CORRUPT : 0;
}

void mlk_reach_room_release(struct mlk_reach_room *room)
{
	free(room->words);
	free(room->ranges);
	free(room->threads);
	free(room->roots);
	*room = (struct mlk_reach_room){0};
}
