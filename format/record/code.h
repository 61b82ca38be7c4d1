/* code.h - CODE and INTERPRETERS chunks, doc/trace-format.md 4.24 and 4.25 */
#ifndef MLK_RECORD_CODE_H
#define MLK_RECORD_CODE_H

#include "format/chunk/codec.h"
#include "format/code.h"
#include "format/record/arena.h"

/* Append @code.  Returns 0, or -EINVAL: a text or its lines are too long. */
int mlk_code_encode(struct mlk_enc *e, const struct mlk_code *code);

/* Read the next one; its texts are in @text, its lines borrowed.  Returns 0 or MLK_E_CORRUPT. */
int mlk_code_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_code *code);

/* The same of an interpreter, which is the whole payload. */
int mlk_interpreter_encode(struct mlk_enc *e, const struct mlk_interpreter *in);
int mlk_interpreter_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_interpreter *in);

#endif
