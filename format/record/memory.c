/* memory.c - see memory.h */
#include "format/record/memory.h"

void mlk_memory_encode(struct mlk_enc *e, struct mlk_memory_state *before,
		       const struct mlk_memory *sample)
{
	const uint64_t known = sample->known & ((UINT64_C(1) << MLK_MEMORY_NR) - 1);

	mlk_enc_uvar(e, sample->tgid);
	mlk_enc_delta(e, sample->time_ns, before->time_ns);
	before->time_ns = sample->time_ns;
	mlk_enc_uvar(e, known);
	if (!known)
		mlk_enc_uvar(e, sample->error);
	for (int i = 0; i < MLK_MEMORY_NR; i++) {
		if (!(known >> i & 1))
			continue;
		mlk_enc_delta(e, sample->value[i], before->value[i]);
		before->value[i] = sample->value[i];
	}
}

int mlk_decode_memory(struct mlk_dec *d, struct mlk_memory_state *before, struct mlk_memory *sample)
{
	uint64_t mask;

	*sample = (struct mlk_memory){0};
	sample->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	before->time_ns = mlk_dec_delta(d, before->time_ns);
	sample->time_ns = before->time_ns;
	mask = mlk_dec_uvar(d);
	if (!mask)
		sample->error = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	for (int i = 0; i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		before->value[i] = mlk_dec_delta(d, before->value[i]);
		if (i >= MLK_MEMORY_NR)
			continue; /* of a later version */
		sample->value[i] = before->value[i];
		sample->known |= UINT64_C(1) << i;
	}
	return d->bad ? MLK_E_CORRUPT : 0;
}
