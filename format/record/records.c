/* records.c - see records.h; nothing here is believed before it is checked */
#include "format/record/records.h"

#include <errno.h>
#include <stdlib.h>

#include "format/chunk/chunk.h"

#define MIN_MAPPING 9 /* bytes that an entry takes at least */

static int result(const struct mlk_dec *d)
{
	return d->bad ? MLK_E_CORRUPT : 0;
}

const char *mlk_decode_str(struct mlk_dec *d, struct mlk_arena *text)
{
	size_t len = 0;
	const char *bytes = mlk_dec_str(d, &len);

	d->bad |= bytes && memchr(bytes, '\0', len);
	return d->bad ? "" : mlk_arena_string(text, bytes, len);
}

int mlk_decode_meta(struct mlk_dec *d, struct mlk_arena *text, struct mlk_meta *meta)
{
	const char **texts[] = {&meta->command, &meta->exe,	&meta->comm,	 &meta->hostname,
				&meta->kernel,	&meta->machine, &meta->recorder, &meta->backend};
	uint64_t *numbers[] = {&meta->tgid,	    &meta->stack_limit,	  &meta->whole_life,
			       &meta->sample_every, &meta->sample_bytes,  &meta->min_size,
			       &meta->max_size,	    &meta->trigger_bytes, &meta->ring_size,
			       &meta->guarded};
	const uint64_t nr_texts = sizeof(texts) / sizeof(texts[0]);
	const uint64_t nr_all = nr_texts + sizeof(numbers) / sizeof(numbers[0]);

	bool seen[32] = {false};

	while (d->at < d->end && !d->bad) {
		uint64_t tag = mlk_dec_uvar(d), len = mlk_dec_uvar(d);
		const uint8_t *bytes = mlk_dec_bytes(d, len);
		struct mlk_dec field = {.at = bytes, .end = d->bad ? NULL : bytes + len};

		if (d->bad || !tag || tag > nr_all || seen[tag])
			continue;
		seen[tag] = true;
		if (tag > nr_texts)
			*numbers[tag - nr_texts - 1] = mlk_dec_uvar(&field);
		else if (len > MLK_MAX_STRING || memchr(bytes, '\0', (size_t)len))
			field.bad = true;
		else
			*texts[tag - 1] = mlk_arena_string(text, (const char *)bytes, (size_t)len);
		d->bad |= field.bad;
	}
	return result(d);
}

static void decode_mapping(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping *m,
			   uint64_t *before)
{
	d->bad |= __builtin_add_overflow(*before, mlk_dec_uvar(d), &m->start);
	d->bad |= __builtin_add_overflow(m->start, mlk_dec_uvar(d), &m->end);
	m->offset = mlk_dec_uvar(d);
	m->perms = mlk_dec_u8(d);
	m->dev_major = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->dev_minor = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->inode = mlk_dec_uvar(d);
	mlk_dec_id(d, &m->id);
	m->path = mlk_decode_str(d, text);
	*before = m->end;
}

int mlk_decode_maps(struct mlk_dec *d, struct mlk_arena *text, struct mlk_mapping **room,
		    struct mlk_maps *maps)
{
	struct mlk_mapping *mappings;
	uint64_t before = 0;

	maps->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	maps->time_ns = mlk_dec_u64(d);
	maps->nr = (size_t)mlk_dec_uvar_max(d, MLK_MAX_MAPPINGS);
	/* no memory for a count that cannot be true */
	if (d->bad || maps->nr > (size_t)(d->end - d->at) / MIN_MAPPING)
		return MLK_E_CORRUPT;
	mappings = realloc(*room, (maps->nr + 1) * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	*room = mappings;
	for (size_t i = 0; i < maps->nr && !d->bad; i++)
		decode_mapping(d, text, &mappings[i], &before);
	maps->mappings = mappings;
	return result(d);
}

int mlk_decode_module(struct mlk_dec *d, struct mlk_arena *text, struct mlk_module *module)
{
	uint64_t end;

	mlk_dec_id(d, &module->id);
	module->path = mlk_decode_str(d, text);
	module->image_len = mlk_dec_uvar_max(d, MLK_MAX_IMAGE);
	module->offset = mlk_dec_uvar(d);
	module->piece_len = (uint32_t)mlk_dec_uvar_max(d, MLK_RAW_MAX);
	module->piece = mlk_dec_bytes(d, module->piece_len);
	if (d->bad || !module->id.len ||
	    __builtin_add_overflow(module->offset, module->piece_len, &end) ||
	    end > module->image_len)
		return MLK_E_CORRUPT;
	return 0;
}

int mlk_decode_thread(struct mlk_dec *d, struct mlk_arena *text, struct mlk_thread *thread)
{
	thread->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	thread->tid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	thread->name = mlk_decode_str(d, text);
	return result(d);
}

/* A list of counts, of which @nr are known; those of a later version are added to the last one
 * known, not forgotten. */
static uint64_t decode_counts(struct mlk_dec *d, uint64_t *counts, uint64_t nr)
{
	uint64_t listed = mlk_dec_uvar(d);

	for (uint64_t i = 0; i < listed && !d->bad; i++)
		counts[i < nr ? i : nr - 1] += mlk_dec_uvar(d);
	return listed;
}

int mlk_decode_losses(struct mlk_dec *d, struct mlk_losses *losses)
{
	*losses = (struct mlk_losses){0};
	losses->nr_kinds = decode_counts(d, losses->count, MLK_LOSS_NR);
	if (d->at < d->end)
		decode_counts(d, losses->skipped, MLK_SKIP_NR);
	if (d->at < d->end)
		decode_counts(d, losses->skipped_bytes, MLK_SKIP_NR);
	return result(d);
}

int mlk_decode_end(struct mlk_dec *d, enum mlk_end *reason, uint64_t *time_ns)
{
	*reason = mlk_dec_u8(d);
	*time_ns = mlk_dec_u64(d);
	return result(d);
}
