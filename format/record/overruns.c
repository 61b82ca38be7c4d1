/* overruns.c - see overruns.h */
#include "format/record/overruns.h"

#include <errno.h>
#include <stdlib.h>

static int begin(struct mlk_overruns_out *o, const struct mlk_filter *filter, uint64_t first_ns)
{
	o->events = calloc(1, sizeof(*o->events));
	if (!o->events)
		return -ENOMEM;
	o->events->filter = *filter;
	o->header = (struct mlk_chunk){.type = MLK_CHUNK_OVERRUNS, .first_ns = first_ns};
	mlk_encoder_begin(o->events, first_ns);
	return 0;
}

/* The bytes around a block are the program's own. */
static void add_head(struct mlk_overruns_out *o, const struct mlk_overrun *overrun)
{
	bool bytes = overrun->bytes && o->events->filter.mode != MLK_STACK_REDACTED;

	mlk_enc_u8(&o->heads, overrun->found);
	mlk_enc_delta(&o->heads, (uint64_t)overrun->offset, 0);
	mlk_enc_uvar(&o->heads, overrun->len);
	mlk_enc_uvar(&o->heads, overrun->changed);
	mlk_enc_u8(&o->heads, bytes);
	if (bytes)
		mlk_enc_bytes(&o->heads, overrun->bytes, overrun->len);
}

int mlk_overruns_out_add(struct mlk_overruns_out *o, const struct mlk_filter *filter,
			 const struct mlk_overrun *overrun)
{
	struct mlk_event event = overrun->at;
	int err = 0;

	if (event.kind != MLK_ALLOC || overrun->len > MLK_MAX_OVERRUN ||
	    overrun->changed > overrun->len)
		return -EINVAL;
	event.func = 0;
	event.alloc_id = 0;
	if (!o->events)
		err = begin(o, filter, event.time_ns);
	if (!err)
		err = mlk_encoder_add(o->events, &event);
	if (err == -EINVAL)
		return err;
	if (!err) {
		add_head(o, overrun);
		o->header.nr_records++;
		o->header.last_ns = event.time_ns;
		err = o->heads.failed ? -ENOMEM : 0;
	}
	if (err)
		mlk_overruns_out_release(o);
	return err;
}

bool mlk_overruns_out_full(const struct mlk_overruns_out *o)
{
	return o->heads.len >= MLK_RAW_TARGET || mlk_encoder_full(o->events);
}

bool mlk_overruns_out_take(struct mlk_overruns_out *o, struct mlk_chunk *header,
			   struct mlk_enc *payload)
{
	bool any = o->events && o->header.nr_records;

	if (any) {
		*header = o->header;
		mlk_enc_uvar(payload, o->heads.len);
		mlk_enc_bytes(payload, o->heads.buf, o->heads.len);
		mlk_encoder_finish(o->events, payload);
	}
	mlk_overruns_out_release(o);
	return any;
}

void mlk_overruns_out_release(struct mlk_overruns_out *o)
{
	if (o->events)
		mlk_encoder_release(o->events);
	free(o->events);
	mlk_enc_release(&o->heads);
	*o = (struct mlk_overruns_out){0};
}

void mlk_overruns_heads(struct mlk_dec *d, struct mlk_dec *heads)
{
	uint64_t len = mlk_dec_uvar(d);
	const uint8_t *bytes = mlk_dec_bytes(d, len);

	*heads = (struct mlk_dec){.at = bytes, .end = d->bad ? bytes : bytes + len};
}

int mlk_decode_overrun(struct mlk_dec *heads, struct mlk_overrun *overrun)
{
	bool given;

	overrun->found = mlk_dec_u8(heads);
	overrun->offset = (int64_t)mlk_dec_delta(heads, 0);
	overrun->len = (uint32_t)mlk_dec_uvar_max(heads, MLK_MAX_OVERRUN);
	overrun->changed = (uint32_t)mlk_dec_uvar_max(heads, overrun->len);
	given = mlk_dec_u8(heads) != 0;
	overrun->bytes = given ? mlk_dec_bytes(heads, overrun->len) : NULL;
	return heads->bad ? MLK_E_CORRUPT : 0;
}
