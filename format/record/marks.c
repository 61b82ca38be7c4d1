/* marks.c - see marks.h */
#include "format/record/marks.h"

#include <errno.h>
#include <string.h>

#include "format/record/records.h"

int mlk_mark_encode(struct mlk_enc *e, uint64_t *before_ns, const struct mlk_mark *mark)
{
	if (strlen(mark->text) > MLK_MAX_STRING)
		return -EINVAL;
	mlk_enc_delta(e, mark->time_ns, *before_ns);
	*before_ns = mark->time_ns;
	mlk_enc_uvar(e, mark->kind);
	mlk_enc_str(e, mark->text);
	return 0;
}

int mlk_decode_mark(struct mlk_dec *d, struct mlk_arena *text, uint64_t *before_ns,
		    struct mlk_mark *mark)
{
	mark->time_ns = *before_ns = mlk_dec_delta(d, *before_ns);
	mark->kind = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	mark->text = mlk_decode_str(d, text);
	return d->bad ? MLK_E_CORRUPT : 0;
}
