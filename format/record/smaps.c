/* smaps.c - see smaps.h */
#include "format/record/smaps.h"

#include <errno.h>
#include <stdlib.h>

#include "format/record/records.h"

#define PAGES_LEAST 2 /* bytes that a run of pages takes at least */

static bool are_pages(const struct mlk_smaps *smaps)
{
	uint64_t before = smaps->start;

	for (size_t i = 0; i < smaps->nr_pages; i++) {
		const struct mlk_page_run *run = &smaps->pages[i];

		if ((run->start | run->end) % MLK_SMAPS_PAGE || run->start < before ||
		    run->end <= run->start || run->end > smaps->end)
			return false;
		before = run->end;
	}
	return true;
}

int mlk_smaps_encode(struct mlk_enc *e, const struct mlk_smaps *smaps)
{
	const uint32_t known = smaps->known & ((1u << MLK_SMAPS_NR) - 1);
	uint64_t before = smaps->start;

	if (smaps->end < smaps->start || !are_pages(smaps) || mlk_str_too_long(smaps->path))
		return -EINVAL;
	mlk_enc_uvar(e, smaps->tgid);
	mlk_enc_uvar(e, smaps->snapshot);
	mlk_enc_uvar(e, smaps->start);
	mlk_enc_uvar(e, smaps->end - smaps->start);
	mlk_enc_u8(e, (uint8_t)smaps->perms);
	mlk_enc_uvar(e, smaps->offset);
	mlk_enc_str(e, smaps->path);
	mlk_enc_uvar(e, known);
	for (int i = 0; i < MLK_SMAPS_NR; i++)
		if (known >> i & 1)
			mlk_enc_uvar(e, smaps->value[i]);
	mlk_enc_uvar(e, smaps->nr_pages);
	for (size_t i = 0; i < smaps->nr_pages; i++) {
		mlk_enc_uvar(e, (smaps->pages[i].start - before) / MLK_SMAPS_PAGE);
		mlk_enc_uvar(e, (smaps->pages[i].end - smaps->pages[i].start) / MLK_SMAPS_PAGE);
		before = smaps->pages[i].end;
	}
	return 0;
}

static void decode_values(struct mlk_dec *d, struct mlk_smaps *smaps)
{
	uint64_t known = mlk_dec_uvar(d), value;

	for (int i = 0; i < 64; i++) {
		if (!(known >> i & 1))
			continue;
		value = mlk_dec_uvar(d);
		if (i >= MLK_SMAPS_NR)
			continue; /* of a later version */
		smaps->value[i] = value;
		smaps->known |= 1u << i;
	}
}

/* The runs, of which there are as many as the bytes that are left allow. */
static int decode_pages(struct mlk_dec *d, struct mlk_smaps_room *room, struct mlk_smaps *smaps)
{
	uint64_t most = (uint64_t)(d->end - d->at) / PAGES_LEAST, nr = mlk_dec_uvar_max(d, most);
	uint64_t before = smaps->start;
	struct mlk_page_run *bigger;

	if (d->bad)
		return MLK_E_CORRUPT;
	if (nr > room->room) {
		bigger = reallocarray(room->pages, nr, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		room->pages = bigger;
		room->room = nr;
	}
	for (size_t i = 0; i < nr; i++) {
		struct mlk_page_run *run = &room->pages[i];
		const uint64_t left = (smaps->end - before) / MLK_SMAPS_PAGE;
		uint64_t step = mlk_dec_uvar_max(d, left);
		uint64_t pages = mlk_dec_uvar_max(d, d->bad ? 0 : left - step);

		if (d->bad || !pages)
			return MLK_E_CORRUPT;
		run->start = before + step * MLK_SMAPS_PAGE;
		run->end = before = run->start + pages * MLK_SMAPS_PAGE;
	}
	smaps->pages = room->pages;
	smaps->nr_pages = nr;
	return 0;
}

int mlk_decode_smaps(struct mlk_dec *d, struct mlk_arena *text, struct mlk_smaps_room *room,
		     struct mlk_smaps *smaps)
{
	*smaps = (struct mlk_smaps){0};
	smaps->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	smaps->snapshot = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	smaps->start = mlk_dec_uvar(d);
	smaps->end = smaps->start + mlk_dec_uvar_max(d, UINT64_MAX - smaps->start);
	smaps->perms = mlk_dec_u8(d);
	smaps->offset = mlk_dec_uvar(d);
	smaps->path = mlk_decode_str(d, text);
	decode_values(d, smaps);
	return decode_pages(d, room, smaps);
}

void mlk_smaps_room_release(struct mlk_smaps_room *room)
{
	free(room->pages);
	*room = (struct mlk_smaps_room){0};
}
