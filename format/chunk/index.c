/* index.c - an index that is written along, and used when it is whole */
#include "format/chunk/index.h"

#include <errno.h>
#include <stdlib.h>

#define END_LEN 17 /* bytes of an END that says where the last INDEX chunk is */

void mlk_index_add(struct mlk_index *x, const struct mlk_chunk *h, uint64_t offset)
{
	struct mlk_enc *e = &x->entries;

	mlk_enc_uvar(e, h->type);
	mlk_enc_uvar(e, offset - x->last.offset);
	mlk_enc_uvar(e, h->seq - x->last.seq);
	mlk_enc_delta(e, h->first_ns, x->last.first_ns);
	mlk_enc_delta(e, h->last_ns, h->first_ns);
	mlk_enc_uvar(e, h->nr_records);
	x->last = (struct mlk_entry){.offset = offset, .seq = h->seq, .first_ns = h->first_ns};
	x->nr++;
}

void mlk_index_take(struct mlk_index *x, uint64_t offset, struct mlk_enc *payload)
{
	mlk_enc_uvar(payload, x->before);
	mlk_enc_uvar(payload, x->nr);
	mlk_enc_bytes(payload, x->entries.buf, x->entries.len);
	payload->failed |= x->entries.failed;
	x->entries.len = 0;
	x->nr = 0;
	x->last = (struct mlk_entry){0};
	x->before = offset;
}

void mlk_index_decode(struct mlk_dec *d, struct mlk_entry *entry)
{
	entry->type = (uint16_t)mlk_dec_uvar_max(d, UINT16_MAX);
	entry->offset += mlk_dec_uvar(d);
	entry->seq += mlk_dec_uvar(d);
	entry->first_ns = mlk_dec_delta(d, entry->first_ns);
	entry->last_ns = mlk_dec_delta(d, entry->first_ns);
	entry->nr_records = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
}

static int append(struct mlk_entries *list, const struct mlk_entry *entry)
{
	if (grow_array(&list->all, list->nr, &list->room, sizeof(*list->all)))
		return -ENOMEM;
	list->all[list->nr++] = *entry;
	return 0;
}

/* The steps below return 1, 0 when the index cannot be used, or -errno. */

/* Load the chunk at @offset, which should be of @type. */
static int load(struct mlk_chunks *c, uint64_t offset, enum mlk_chunk_type type)
{
	int err;

	if (offset < c->file.len || offset >= c->source.size)
		return 0;
	c->at = offset;
	err = mlk_chunks_next(c);
	if (err < 0)
		return err;
	if (!err || c->chunk_at != offset || c->header.type != type)
		return 0;
	err = mlk_chunks_load(c);
	return err == MLK_E_CORRUPT ? 0 : err ? err : 1;
}

/* Find the last INDEX chunk: END, which ends the file, says where it is, and follows it. */
static int find_last(struct mlk_chunks *c, uint64_t *offset)
{
	const uint64_t end_len = MLK_CHUNK_HEADER + END_LEN;
	uint64_t end_at, seq;
	int got;

	if (c->source.size < end_len)
		return 0;
	end_at = c->source.size - end_len;
	got = load(c, end_at, MLK_CHUNK_END);
	if (got <= 0)
		return got;
	if (c->header.raw_len != END_LEN)
		return 0;
	*offset = mlk_get_u64(c->raw + END_LEN - 8);
	seq = c->header.seq;
	got = load(c, *offset, MLK_CHUNK_INDEX);
	return got <= 0 ? got : c->at == end_at && c->header.seq + 1 == seq;
}

/* The offsets of all INDEX chunks from the one at @offset back. */
static int find_all(struct mlk_chunks *c, uint64_t offset, struct mlk_entries *found)
{
	while (offset) {
		struct mlk_entry entry = {.offset = offset};
		struct mlk_dec d;
		int got = load(c, offset, MLK_CHUNK_INDEX);

		if (got <= 0)
			return got;
		if (append(found, &entry))
			return -ENOMEM;
		d = (struct mlk_dec){.at = c->raw, .end = c->raw + c->header.raw_len};
		entry.offset = mlk_dec_uvar(&d);
		if (d.bad || entry.offset >= offset)
			return 0;
		offset = entry.offset;
	}
	return 1;
}

/* Can there be a chunk at @offset, behind all that are listed?  So a list is never longer than the
 * file has room for. */
static bool behind(const struct mlk_entries *list, uint64_t offset)
{
	return !list->nr || (offset > list->all[list->nr - 1].offset &&
			     offset - list->all[list->nr - 1].offset >= MLK_CHUNK_HEADER);
}

/* Append the entries of the INDEX chunk at @offset, whose sequence numbers must follow @next. */
static int take(struct mlk_chunks *c, uint64_t offset, uint64_t *next, struct mlk_entries *list)
{
	struct mlk_entry entry = {0};
	struct mlk_dec d;
	uint64_t nr;
	int got = load(c, offset, MLK_CHUNK_INDEX);

	if (got <= 0)
		return got;
	d = (struct mlk_dec){.at = c->raw, .end = c->raw + c->header.raw_len};
	mlk_dec_uvar(&d);
	nr = mlk_dec_uvar(&d);
	for (; nr && !d.bad; nr--) {
		mlk_index_decode(&d, &entry);
		if (d.bad || entry.seq != (*next)++ || !behind(list, entry.offset) ||
		    entry.offset >= offset)
			return 0;
		if (append(list, &entry))
			return -ENOMEM;
	}
	return !d.bad && c->header.seq == (*next)++;
}

/* List what the INDEX chunks say, and END. */
static int use_index(struct mlk_chunks *c, struct mlk_entries *list)
{
	struct mlk_entries found = {0};
	uint64_t last = 0, next = 0;
	int got = find_last(c, &last);

	if (got > 0)
		got = find_all(c, last, &found);
	for (size_t i = found.nr; i > 0 && got > 0; i--)
		got = take(c, found.all[i - 1].offset, &next, list);
	free(found.all);
	return got;
}

bool mlk_entry_is_of(const struct mlk_entry *entry, const struct mlk_chunk *h)
{
	return h->type == entry->type && h->seq == entry->seq && h->first_ns == entry->first_ns &&
	       h->last_ns == entry->last_ns && h->nr_records == entry->nr_records;
}

/* Compare what is listed with the headers themselves; a damaged one says nothing. */
static int compare(struct mlk_chunks *c, const struct mlk_entries *list, bool *lied)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct mlk_entry *entry = &list->all[i];
		int found = mlk_chunks_header_at(c, entry->offset);

		if (found < 0)
			return found;
		if (found && !mlk_entry_is_of(entry, &c->header)) {
			*lied = true;
			return 0;
		}
	}
	return 1;
}

static struct mlk_entry entry_of(const struct mlk_chunks *c)
{
	return (struct mlk_entry){
		.offset = c->chunk_at,
		.type = c->header.type,
		.seq = c->header.seq,
		.first_ns = c->header.first_ns,
		.last_ns = c->header.last_ns,
		.nr_records = c->header.nr_records,
	};
}

/* Append the chunks from c->at on. */
static int scan_file(struct mlk_chunks *c, struct mlk_entries *list)
{
	int got;

	while ((got = mlk_chunks_next(c)) > 0) {
		struct mlk_entry entry = entry_of(c);

		if (entry.type != MLK_CHUNK_INDEX && append(list, &entry))
			return -ENOMEM;
	}
	return got;
}

int mlk_index_list(const struct mlk_chunks *opened, bool *lied, struct mlk_entries *list)
{
	struct mlk_chunks c = {.source = opened->source, .file = opened->file};
	int got = 0;

	list->nr = 0;
	if (!*lied)
		got = use_index(&c, list);
	/* With an index only END is left, which follows the last INDEX chunk. */
	if (got > 0)
		got = compare(&c, list, lied);
	if (!got) {
		list->nr = 0;
		mlk_chunks_rewind(&c);
	}
	if (got >= 0)
		got = scan_file(&c, list);
	free(c.stored);
	free(c.raw);
	return got < 0 ? got : 0;
}
