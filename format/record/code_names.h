/* code_names.h - CODENAMES chunks, doc/trace-format.md 4.23 */
#ifndef MLK_RECORD_CODE_NAMES_H
#define MLK_RECORD_CODE_NAMES_H

#include "format/chunk/codec.h"
#include "format/code_names.h"
#include "format/record/arena.h"

/* What the names of a record are kept in; all zero is none. */
struct mlk_code_names_room {
	struct mlk_code_name *names;
	size_t room;
};

/* Append @names to @e: as many of them as a chunk should hold, whose number goes to *@done. Returns
 * 0, or -EINVAL: a string is too long, or a function wraps around. */
int mlk_code_names_encode(struct mlk_enc *e, const struct mlk_code_names *names, size_t *done);

/* Read one from @d; strings are in @text.  Returns 0, MLK_E_CORRUPT or -ENOMEM. */
int mlk_code_names_decode(struct mlk_dec *d, struct mlk_arena *text,
			  struct mlk_code_names_room *room, struct mlk_code_names *names);

#endif
