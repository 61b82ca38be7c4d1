/* regions.c - see regions.h */
#include "format/record/regions.h"

#include <errno.h>
#include <stdlib.h>

#include "format/chunk/chunk.h"
#include "format/record/records.h"

#define MIN_REGION 8  /* bytes that one takes at least */
#define LOOK_BACK  16 /* entries before, for one of the same path: of what is mapped in turns */
/* Bytes of those that are written: what is left of a chunk holds any one more. */
#define ROOM (3u << 20)

/* How many entries before number @i the same path was; 0: not among the last few. */
static size_t same_path(const struct mlk_regions *regions, size_t i)
{
	for (size_t back = 1; back <= LOOK_BACK && back <= i; back++)
		if (!strcmp(regions->mappings[i].path, regions->mappings[i - back].path))
			return back;
	return 0;
}

static void encode_one(struct mlk_enc *e, const struct mlk_regions *regions, size_t i)
{
	const struct mlk_mapping *m = &regions->mappings[i];
	size_t back = same_path(regions, i);

	mlk_enc_uvar(e, m->start - (i ? m[-1].end : 0));
	mlk_enc_uvar(e, m->end - m->start);
	mlk_enc_u8(e, (uint8_t)m->perms);
	mlk_enc_uvar(e, m->offset);
	mlk_enc_uvar(e, m->dev_major);
	mlk_enc_uvar(e, m->dev_minor);
	mlk_enc_uvar(e, m->inode);
	mlk_enc_uvar(e, back);
	if (!back)
		mlk_enc_str(e, m->path);
}

int mlk_regions_encode(struct mlk_enc *e, const struct mlk_regions *regions)
{
	struct mlk_enc entries = {0};
	uint64_t before = 0;
	size_t nr = 0;

	for (; nr < regions->nr && nr < MLK_MAX_REGIONS && entries.len < ROOM; nr++) {
		const struct mlk_mapping *m = &regions->mappings[nr];

		if (m->start < before || m->end < m->start || mlk_str_too_long(m->path)) {
			mlk_enc_release(&entries);
			return -EINVAL;
		}
		encode_one(&entries, regions, nr);
		before = m->end;
	}
	mlk_enc_uvar(e, regions->tgid);
	mlk_enc_u64(e, regions->time_ns);
	mlk_enc_uvar(e, regions->nr - nr + regions->left_out);
	mlk_enc_uvar(e, nr);
	mlk_enc_bytes(e, entries.buf, entries.len);
	e->failed |= entries.failed;
	mlk_enc_release(&entries);
	return 0;
}

static void decode_one(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping *all, size_t i)
{
	struct mlk_mapping *m = &all[i];
	uint64_t before = i ? all[i - 1].end : 0, back;

	*m = (struct mlk_mapping){0};
	m->start = before + mlk_dec_uvar_max(d, UINT64_MAX - before);
	m->end = m->start + mlk_dec_uvar_max(d, UINT64_MAX - m->start);
	m->perms = mlk_dec_u8(d);
	m->offset = mlk_dec_uvar(d);
	m->dev_major = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->dev_minor = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->inode = mlk_dec_uvar(d);
	back = mlk_dec_uvar_max(d, i);
	m->path = back && !d->bad ? all[i - back].path : mlk_decode_str(d, text);
}

int mlk_regions_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping **room,
		       struct mlk_regions *regions)
{
	struct mlk_mapping *mappings;

	regions->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	regions->time_ns = mlk_dec_u64(d);
	regions->left_out = mlk_dec_uvar(d);
	regions->nr = (size_t)mlk_dec_uvar_max(d, MLK_MAX_REGIONS);
	/* no memory for a count that cannot be true */
	if (d->bad || regions->nr > (size_t)(d->end - d->at) / MIN_REGION)
		return MLK_E_CORRUPT;
	mappings = realloc(*room, (regions->nr + 1) * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	*room = mappings;
	for (size_t i = 0; i < regions->nr && !d->bad; i++)
		decode_one(d, text, mappings, i);
	regions->mappings = mappings;
	return d->bad ? MLK_E_CORRUPT : 0;
}
