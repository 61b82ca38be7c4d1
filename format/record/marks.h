/* marks.h - MARKS chunks, doc/trace-format.md 4.16 */
#ifndef MLK_RECORD_MARKS_H
#define MLK_RECORD_MARKS_H

#include "format/chunk/codec.h"
#include "format/reader.h"
#include "format/record/arena.h"

/* Append @mark to @e; *before_ns is the time of the mark before, and this one's then.  Returns 0,
 * or -EINVAL: the text is too long. */
int mlk_mark_encode(struct mlk_enc *e, uint64_t *before_ns, const struct mlk_mark *mark);

/* Read the next mark from @d; its text is in @text.  Returns 0 or MLK_E_CORRUPT. */
int mlk_decode_mark(struct mlk_dec *d, struct mlk_arena *text, uint64_t *before_ns,
		    struct mlk_mark *mark);

#endif
