/* beside.c - see beside.h */
#include "format/record/beside.h"

#include <errno.h>
#include <stdlib.h>

static int begin(struct mlk_beside *b, const struct mlk_filter *filter, uint16_t type,
		 uint64_t first_ns)
{
	b->events = calloc(1, sizeof(*b->events));
	if (!b->events)
		return -ENOMEM;
	b->events->filter = *filter;
	b->header = (struct mlk_chunk){.type = type, .first_ns = first_ns};
	mlk_encoder_begin(b->events, first_ns);
	return 0;
}

/* The bytes around a block are the program's own. */
static void add_head(struct mlk_beside *b, const struct mlk_overrun *overrun)
{
	bool bytes = overrun->bytes && b->events->filter.mode != MLK_STACK_REDACTED;

	mlk_enc_u8(&b->heads, overrun->found);
	mlk_enc_delta(&b->heads, (uint64_t)overrun->offset, 0);
	mlk_enc_uvar(&b->heads, overrun->len);
	mlk_enc_uvar(&b->heads, overrun->changed);
	mlk_enc_u8(&b->heads, bytes);
	if (bytes)
		mlk_enc_bytes(&b->heads, overrun->bytes, overrun->len);
}

int mlk_beside_add(struct mlk_beside *b, const struct mlk_filter *filter,
		   const struct mlk_event *event, const struct mlk_overrun *overrun)
{
	struct mlk_event plain = *event;
	int err = 0;

	if (event->kind != MLK_ALLOC ||
	    (overrun && (overrun->len > MLK_MAX_OVERRUN || overrun->changed > overrun->len)))
		return -EINVAL;
	plain.func = 0;
	plain.alloc_id = 0;
	if (!b->events)
		err = begin(b, filter, overrun ? MLK_CHUNK_OVERRUNS : MLK_CHUNK_STACKS,
			    plain.time_ns);
	if (!err)
		err = mlk_encoder_add(b->events, &plain);
	if (err == -EINVAL)
		return err;
	if (!err) {
		if (overrun)
			add_head(b, overrun);
		b->header.nr_records++;
		b->header.last_ns = plain.time_ns;
		err = b->heads.failed ? -ENOMEM : 0;
	}
	if (err)
		mlk_beside_release(b);
	return err;
}

bool mlk_beside_full(const struct mlk_beside *b)
{
	return b->heads.len >= MLK_RAW_TARGET || mlk_encoder_full(b->events);
}

bool mlk_beside_take(struct mlk_beside *b, struct mlk_chunk *header, struct mlk_enc *payload)
{
	bool any = b->events && b->header.nr_records;

	if (any) {
		*header = b->header;
		if (header->type == MLK_CHUNK_OVERRUNS) {
			mlk_enc_uvar(payload, b->heads.len);
			mlk_enc_bytes(payload, b->heads.buf, b->heads.len);
		}
		mlk_encoder_finish(b->events, payload);
	}
	mlk_beside_release(b);
	return any;
}

void mlk_beside_release(struct mlk_beside *b)
{
	if (b->events)
		mlk_encoder_release(b->events);
	free(b->events);
	mlk_enc_release(&b->heads);
	*b = (struct mlk_beside){0};
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
