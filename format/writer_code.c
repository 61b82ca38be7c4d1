/* writer_code.c - interpreted functions and interpreters into their chunks */
#include <errno.h>

#include "format/record/code.h"
#include "format/writer_state.h"

/* Bytes of functions at which a chunk is full; one more has hardly more than MLK_MAX_LINES. */
#define CODES_BYTES (512u << 10)

int mlk_writer_flush_codes(struct mlk_writer *w)
{
	struct mlk_enc e = {0};
	uint32_t nr = w->nr_codes;

	if (!nr)
		return 0;
	mlk_enc_uvar(&e, nr);
	mlk_enc_bytes(&e, w->codes.buf, w->codes.len);
	e.failed |= w->codes.failed;
	w->codes.len = w->nr_codes = 0;
	return mlk_writer_put_single(w, MLK_CHUNK_CODE, 0, &e);
}

int mlk_writer_code(struct mlk_writer *w, const struct mlk_code *code)
{
	int err = mlk_code_encode(&w->codes, code);

	if (err)
		return err;
	w->nr_codes++;
	return w->codes.len >= CODES_BYTES ? mlk_writer_flush_codes(w) : 0;
}

int mlk_writer_interpreter(struct mlk_writer *w, const struct mlk_interpreter *in)
{
	struct mlk_enc e = {0};
	int err = mlk_interpreter_encode(&e, in);

	if (!err)
		return mlk_writer_put_single(w, MLK_CHUNK_INTERPRETERS, in->time_ns, &e);
	mlk_enc_release(&e);
	return err;
}
