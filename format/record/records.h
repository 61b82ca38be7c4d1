/* records.h - the records of all chunks but EVENTS, doc/trace-format.md 4.1 to 4.3, 4.5 to 4.7 */
#ifndef MLK_RECORDS_H
#define MLK_RECORDS_H

#include "format/chunk/codec.h"
#include "format/reader.h"
#include "format/record/arena.h"

#define MLK_MAX_MAPPINGS (1u << 20) /* in a snapshot */
#define MLK_MAX_THREADS	 (1u << 20) /* in a chunk */

/* A str of the specification, which holds no NUL; "" and d->bad for another. */
const char *mlk_decode_str(struct mlk_dec *d, struct mlk_arena *text);

/* Append the piece of @module's image that begins *@done bytes into it, and add its bytes to
 * *@done; @module->piece is the whole image.  Returns 0, or -EINVAL: a trace has no such modules.
 */
int mlk_module_piece(struct mlk_enc *e, const struct mlk_module *module, uint64_t *done);

/*
 * Each reads one record, or the whole payload where that is one record, from @d.  What they give
 * points to @d's bytes and to strings in @text, where text->failed is set if memory runs out.
 * Return 0, MLK_E_CORRUPT or -ENOMEM.
 */
int mlk_decode_meta(struct mlk_dec *d, struct mlk_arena *text, struct mlk_meta *meta);
int mlk_decode_module(struct mlk_dec *d, struct mlk_arena *text, struct mlk_module *module);
int mlk_decode_thread(struct mlk_dec *d, struct mlk_arena *text, struct mlk_thread *thread);
int mlk_decode_origin(struct mlk_dec *d, struct mlk_arena *text, struct mlk_origin *origin);
int mlk_decode_account(struct mlk_dec *d, struct mlk_account *account); /* but its time */
int mlk_decode_losses(struct mlk_dec *d, struct mlk_losses *losses);
int mlk_decode_end(struct mlk_dec *d, struct mlk_ending *end);

/* As those.  The entries are in *@room, which grows, and which the caller frees in the end. */
int mlk_decode_maps(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping **room,
		    struct mlk_maps *maps);

/* False: a string is too long, or the stack mode is none. */
bool mlk_meta_is_valid(const struct mlk_meta *m);

/* Append the payload of a META chunk to @e. */
void mlk_meta_encode(struct mlk_enc *e, const struct mlk_meta *m);

/* Append one of an ACCOUNTS chunk's records to @e. */
void mlk_account_encode(struct mlk_enc *e, const struct mlk_account *account);

/* Append the payload of an END chunk to @e; @index: where the last INDEX chunk is, 0: nowhere. */
void mlk_end_encode(struct mlk_enc *e, const struct mlk_ending *end, uint64_t index);

/* The tag of mlk_meta.dropped. */
#define MLK_META_DROPPED 20

#endif
