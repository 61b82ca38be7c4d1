/* code_names.c - see code_names.h */
#include "format/record/code_names.h"

#include <errno.h>
#include <stdlib.h>

#include "format/chunk/chunk.h"
#include "format/record/records.h"

#define MIN_NAME 4	    /* bytes that one takes at least */
#define ROOM	 (1u << 20) /* bytes of the names in a chunk, but for its last */

int mlk_code_names_encode(struct mlk_enc *e, const struct mlk_code_names *names, size_t *done)
{
	struct mlk_enc entries = {0};
	uint64_t before = 0;
	size_t nr = 0;

	if (mlk_str_too_long(names->problem))
		return -EINVAL;
	for (; nr < names->nr && nr < MLK_MAX_CODE_NAMES && entries.len < ROOM; nr++) {
		const struct mlk_code_name *n = &names->names[nr];

		if (n->len > UINT64_MAX - n->start || mlk_str_too_long(n->name)) {
			mlk_enc_release(&entries);
			return -EINVAL;
		}
		mlk_enc_delta(&entries, n->start, before);
		mlk_enc_uvar(&entries, n->len);
		mlk_enc_uvar(&entries, n->frame);
		mlk_enc_str(&entries, n->name);
		before = n->start;
	}
	mlk_enc_uvar(e, names->tgid);
	mlk_enc_u64(e, names->time_ns);
	mlk_enc_uvar(e, names->source);
	mlk_enc_uvar(e, names->flags);
	mlk_enc_uvar(e, names->left_out);
	mlk_enc_str(e, names->problem);
	mlk_enc_uvar(e, nr);
	mlk_enc_bytes(e, entries.buf, entries.len);
	e->failed |= entries.failed;
	mlk_enc_release(&entries);
	*done = nr;
	return 0;
}

/* Have room for @nr names.  Returns 0 or -ENOMEM. */
static int grow_room(struct mlk_code_names_room *room, size_t nr)
{
	struct mlk_code_name *names;

	if (nr <= room->room)
		return 0;
	names = reallocarray(room->names, nr, sizeof(*names));
	if (!names)
		return -ENOMEM;
	room->names = names;
	room->room = nr;
	return 0;
}

int mlk_code_names_decode(struct mlk_dec *d, struct mlk_arena *text,
			  struct mlk_code_names_room *room, struct mlk_code_names *names)
{
	uint64_t before = 0;

	names->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	names->time_ns = mlk_dec_u64(d);
	names->source = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	names->flags = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	names->left_out = mlk_dec_uvar(d);
	names->problem = mlk_decode_str(d, text);
	names->nr = (size_t)mlk_dec_uvar_max(d, MLK_MAX_CODE_NAMES);
	/* no memory for a count that cannot be true */
	if (d->bad || names->nr > (size_t)(d->end - d->at) / MIN_NAME)
		return MLK_E_CORRUPT;
	if (grow_room(room, names->nr))
		return -ENOMEM;
	for (size_t i = 0; i < names->nr && !d->bad; i++) {
		struct mlk_code_name *n = &room->names[i];

		n->start = before = mlk_dec_delta(d, before);
		n->len = mlk_dec_uvar_max(d, UINT64_MAX - n->start);
		n->frame = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
		n->name = mlk_decode_str(d, text);
	}
	names->names = room->names;
	return d->bad ? MLK_E_CORRUPT : 0;
}
