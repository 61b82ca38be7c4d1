/* records.c - see records.h; nothing here is believed before it is checked */
#include "format/record/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* The fields of META by their tags from 1 on: texts, and then numbers. */
static const size_t meta_fields[] = {
	offsetof(struct mlk_meta, command),
	offsetof(struct mlk_meta, exe),
	offsetof(struct mlk_meta, comm),
	offsetof(struct mlk_meta, hostname),
	offsetof(struct mlk_meta, kernel),
	offsetof(struct mlk_meta, machine),
	offsetof(struct mlk_meta, recorder),
	offsetof(struct mlk_meta, backend),
	offsetof(struct mlk_meta, tgid),
	offsetof(struct mlk_meta, stack_limit),
	offsetof(struct mlk_meta, whole_life),
	offsetof(struct mlk_meta, sample_every),
	offsetof(struct mlk_meta, sample_bytes),
	offsetof(struct mlk_meta, min_size),
	offsetof(struct mlk_meta, max_size),
	offsetof(struct mlk_meta, trigger_bytes),
	offsetof(struct mlk_meta, ring_size),
	offsetof(struct mlk_meta, guarded),
	offsetof(struct mlk_meta, of_kernel),
	offsetof(struct mlk_meta, dropped),
	offsetof(struct mlk_meta, trigger_process),
	offsetof(struct mlk_meta, trigger_site),
};

#define NR_TEXTS    8
#define NR_FIELDS   (sizeof(meta_fields) / sizeof(meta_fields[0]))
#define LAST_ALWAYS 11 /* the numbers behind this tag are written unless they are 0 */

static const char *meta_text(const struct mlk_meta *m, size_t tag)
{
	const char *text;

	memcpy(&text, (const char *)m + meta_fields[tag - 1], sizeof(text));
	return text;
}

static uint64_t meta_number(const struct mlk_meta *m, size_t tag)
{
	uint64_t number;

	memcpy(&number, (const char *)m + meta_fields[tag - 1], sizeof(number));
	return number;
}

/* Read the field @tag of the @len bytes at @bytes into @meta.  False: it is not what it must be. */
static bool decode_meta_field(struct mlk_arena *text, uint64_t tag, const uint8_t *bytes,
			      size_t len, struct mlk_meta *meta)
{
	struct mlk_dec field = {.at = bytes, .end = bytes + len};
	const char *string;
	uint64_t number;

	if (tag > NR_TEXTS) {
		number = mlk_dec_uvar(&field);
		memcpy((char *)meta + meta_fields[tag - 1], &number, sizeof(number));
		return !field.bad;
	}
	if (len > MLK_MAX_STRING || memchr(bytes, '\0', len))
		return false;
	string = mlk_arena_string(text, (const char *)bytes, len);
	memcpy((char *)meta + meta_fields[tag - 1], &string, sizeof(string));
	return true;
}

int mlk_decode_meta(struct mlk_dec *d, struct mlk_arena *text, struct mlk_meta *meta)
{
	bool seen[32] = {false};

	while (d->at < d->end && !d->bad) {
		uint64_t tag = mlk_dec_uvar(d), len = mlk_dec_uvar(d);
		const uint8_t *bytes = mlk_dec_bytes(d, len);

		if (d->bad || !tag || tag > NR_FIELDS || seen[tag])
			continue;
		seen[tag] = true;
		d->bad |= !decode_meta_field(text, tag, bytes, (size_t)len, meta);
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

int mlk_module_piece(struct mlk_enc *e, const struct mlk_module *module, uint64_t *done)
{
	uint64_t left = module->image_len - *done;
	uint64_t piece = left < MLK_RAW_TARGET ? left : MLK_RAW_TARGET;

	if (!module->id.len || module->id.len > MLK_MAX_ID || mlk_str_too_long(module->path) ||
	    module->image_len > MLK_MAX_IMAGE)
		return -EINVAL;
	mlk_enc_id(e, &module->id);
	mlk_enc_str(e, module->path);
	mlk_enc_uvar(e, module->image_len);
	mlk_enc_uvar(e, *done);
	mlk_enc_uvar(e, piece);
	mlk_enc_bytes(e, module->piece + *done, (size_t)piece);
	*done += piece;
	return 0;
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

int mlk_decode_origin(struct mlk_dec *d, struct mlk_arena *text, struct mlk_origin *origin)
{
	origin->number = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	origin->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	origin->process = mlk_decode_str(d, text);
	origin->cgroup = mlk_decode_str(d, text);
	origin->cache = mlk_decode_str(d, text);
	origin->flags = mlk_decode_str(d, text);
	origin->order = (uint32_t)mlk_dec_uvar_max(d, 63);
	return result(d);
}

static void decode_sum(struct mlk_dec *d, struct mlk_sum *sum)
{
	sum->blocks = mlk_dec_uvar(d);
	sum->bytes = mlk_dec_uvar(d);
}

int mlk_decode_account(struct mlk_dec *d, struct mlk_account *account)
{
	account->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	account->tid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	account->flags = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	decode_sum(d, &account->allocated);
	decode_sum(d, &account->freed);
	decode_sum(d, &account->freed_by_others);
	return result(d);
}

static void encode_sum(struct mlk_enc *e, const struct mlk_sum *sum)
{
	mlk_enc_uvar(e, sum->blocks);
	mlk_enc_uvar(e, sum->bytes);
}

void mlk_account_encode(struct mlk_enc *e, const struct mlk_account *account)
{
	mlk_enc_uvar(e, account->tgid);
	mlk_enc_uvar(e, account->tid);
	mlk_enc_uvar(e, account->flags);
	encode_sum(e, &account->allocated);
	encode_sum(e, &account->freed);
	encode_sum(e, &account->freed_by_others);
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

int mlk_decode_end(struct mlk_dec *d, struct mlk_ending *end)
{
	end->reason = mlk_dec_u8(d);
	end->time_ns = mlk_dec_u64(d);
	return result(d);
}

void mlk_end_encode(struct mlk_enc *e, const struct mlk_ending *end, uint64_t index)
{
	mlk_enc_u8(e, (uint8_t)end->reason);
	mlk_enc_u64(e, end->time_ns);
	mlk_enc_u64(e, index);
}

static void meta_str(struct mlk_enc *e, unsigned int tag, const char *s)
{
	if (!s || !*s)
		return;
	mlk_enc_uvar(e, tag);
	mlk_enc_str(e, s);
}

static void meta_num(struct mlk_enc *e, unsigned int tag, uint64_t value)
{
	struct mlk_enc field = {0};

	mlk_enc_uvar(&field, value);
	mlk_enc_uvar(e, tag);
	mlk_enc_uvar(e, field.len);
	mlk_enc_bytes(e, field.buf, field.len);
	e->failed |= field.failed;
	mlk_enc_release(&field);
}

void mlk_meta_encode(struct mlk_enc *e, const struct mlk_meta *m)
{
	for (unsigned int tag = 1; tag <= NR_FIELDS; tag++)
		if (tag <= NR_TEXTS)
			meta_str(e, tag, meta_text(m, tag));
		else if (tag <= LAST_ALWAYS || meta_number(m, tag))
			meta_num(e, tag, meta_number(m, tag));
}

bool mlk_meta_is_valid(const struct mlk_meta *m)
{
	bool valid = m->stack_mode <= MLK_STACK_REDACTED;

	for (unsigned int tag = 1; tag <= NR_TEXTS; tag++)
		valid &= !mlk_str_too_long(meta_text(m, tag));
	return valid;
}
