/* index.h - where the chunks of a trace are, doc/trace-format.md 4.8 */
#ifndef MLK_INDEX_H
#define MLK_INDEX_H

#include "format/chunk/chunks.h"
#include "format/chunk/codec.h"
#include "format/reader.h"

/* Bytes of entries, at which a writer writes them: they are in memory until then. */
#define MLK_INDEX_TARGET (64u << 10)

/* The entries of the chunks written since the last INDEX chunk. */
struct mlk_index {
	struct mlk_enc entries;
	uint64_t nr;
	struct mlk_entry last;
	uint64_t before; /* offset of the INDEX chunk written last, 0: none */
};

/* Add the chunk with @h at @offset. */
void mlk_index_add(struct mlk_index *x, const struct mlk_chunk *h, uint64_t offset);
/* The payload of an INDEX chunk that will be at @offset; what it holds is forgotten here.
 * payload->failed is set if memory runs out. */
void mlk_index_take(struct mlk_index *x, uint64_t offset, struct mlk_enc *payload);

/* The next entry of an INDEX chunk; *@entry holds the one before, at first all 0. */
void mlk_index_decode(struct mlk_dec *d, struct mlk_entry *entry);

/* Does @entry say what @h, the header at its place, says? */
bool mlk_entry_is_of(const struct mlk_entry *entry, const struct mlk_chunk *h);

/* The chunks of a trace, in the order of the file. */
struct mlk_entries {
	struct mlk_entry *all; /* freed by the caller */
	size_t nr, room;
};

/*
 * List all chunks but INDEX of the trace that @c was opened on: as its INDEX chunks say, if they
 * account for every sequence number and for what each chunk's header says, else by scanning the
 * file; so, too, if *@lied is set.  It becomes so when they say something else than a header that
 * is whole.  @c itself stays as it is.  Returns 0, -ENOMEM or -errno of read(2).
 */
int mlk_index_list(const struct mlk_chunks *c, bool *lied, struct mlk_entries *list);

#endif
