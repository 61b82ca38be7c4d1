/* records.h - the records of all chunks but EVENTS, doc/trace-format.md 4.1 to 4.3, 4.5 to 4.7 */
#ifndef MLK_RECORDS_H
#define MLK_RECORDS_H

#include "format/chunk/codec.h"
#include "format/record/arena.h"
#include "format/trace.h"

#define MLK_MAX_MAPPINGS (1u << 20) /* in a snapshot */
#define MLK_MAX_THREADS	 (1u << 20) /* in a chunk */

/* A str of the specification, which holds no NUL; "" and d->bad for another. */
const char *mlk_decode_str(struct mlk_dec *d, struct mlk_arena *text);

/*
 * Each reads one record, or the whole payload where that is one record, from @d.  What they give
 * points to @d's bytes and to strings in @text, where text->failed is set if memory runs out.
 * Return 0, MLK_E_CORRUPT or -ENOMEM.
 */
int mlk_decode_meta(struct mlk_dec *d, struct mlk_arena *text, struct mlk_meta *meta);
int mlk_decode_module(struct mlk_dec *d, struct mlk_arena *text, struct mlk_module *module);
int mlk_decode_thread(struct mlk_dec *d, struct mlk_arena *text, struct mlk_thread *thread);
int mlk_decode_origin(struct mlk_dec *d, struct mlk_arena *text, struct mlk_origin *origin);
int mlk_decode_losses(struct mlk_dec *d, struct mlk_losses *losses);
int mlk_decode_end(struct mlk_dec *d, enum mlk_end *reason, uint64_t *time_ns);

/* As those.  The entries are in *@room, which grows, and which the caller frees in the end. */
int mlk_decode_maps(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping **room,
		    struct mlk_maps *maps);

/* False: a string is too long, or the stack mode is none. */
bool mlk_meta_is_valid(const struct mlk_meta *m);

/* Write the file's header at the beginning of @fd.  0 or -errno. */
int mlk_meta_write_header(int fd, uint32_t salt, const struct mlk_meta *m);

/* Append the payload of a META chunk to @e. */
void mlk_meta_encode(struct mlk_enc *e, const struct mlk_meta *m);

#endif
