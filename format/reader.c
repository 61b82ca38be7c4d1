/* reader.c - chunks to records */
#include "format/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena.h"
#include "format/chunks.h"
#include "format/events.h"

#define MAX_MAPPINGS (1u << 20)
#define MAX_THREADS  (1u << 20)

struct mlk_reader {
	struct mlk_chunks chunks;
	unsigned int types; /* records asked for */
	struct mlk_meta meta;
	struct mlk_arena meta_text;
	/* the chunk at hand */
	bool in_chunk;
	uint64_t left; /* THREADS: those not given out yet */
	struct mlk_dec dec;
	struct mlk_coder coder;
	struct mlk_arena text; /* strings of the record given out last */
	struct mlk_mapping *mappings;
	uint8_t stack[MLK_MAX_STACK];
};

/* Which records a chunk of @type holds; 0: none, but the reader itself wants it. */
static unsigned int records_of(unsigned int type)
{
	switch (type) {
	case MLK_CHUNK_EVENTS:
		return MLK_RECORD_EVENT;
	case MLK_CHUNK_MAPS:
		return MLK_RECORD_MAPS;
	case MLK_CHUNK_MODULE:
		return MLK_RECORD_MODULE;
	case MLK_CHUNK_THREADS:
		return MLK_RECORD_THREAD;
	default:
		return 0;
	}
}

static void decode_meta(struct mlk_reader *r, struct mlk_dec *d)
{
	const char **text[] = {&r->meta.command,  &r->meta.exe,	   &r->meta.comm,
			       &r->meta.hostname, &r->meta.kernel, &r->meta.machine,
			       &r->meta.recorder, &r->meta.backend};
	uint64_t *number[] = {&r->meta.tgid, &r->meta.stack_limit, &r->meta.whole_life};
	const uint64_t nr_text = sizeof(text) / sizeof(text[0]);
	const uint64_t nr_all = nr_text + sizeof(number) / sizeof(number[0]);

	while (d->at < d->end && !d->bad) {
		uint64_t tag = mlk_dec_uvar(d);
		size_t len = 0;
		const char *bytes = mlk_dec_str(d, &len);
		struct mlk_dec field = {.at = (const uint8_t *)bytes,
					.end = (const uint8_t *)bytes + len};

		if (d->bad || !tag || tag > nr_all)
			continue;
		if (tag <= nr_text)
			*text[tag - 1] = mlk_arena_string(&r->meta_text, bytes, len);
		else
			*number[tag - nr_text - 1] = mlk_dec_uvar(&field);
	}
}

static void decode_losses(struct mlk_reader *r, struct mlk_dec *d)
{
	uint64_t nr = mlk_dec_uvar(d);
	struct mlk_losses losses = {0};

	for (uint64_t i = 0; i < nr && !d->bad; i++) {
		uint64_t count = mlk_dec_uvar(d);

		/* Kinds of a later version are added to the last one known, not forgotten. */
		losses.count[i < MLK_LOSS_NR ? i : MLK_LOSS_NR - 1] += count;
	}
	if (!d->bad)
		r->chunks.condition.losses = losses;
}

static void decode_end(struct mlk_reader *r, struct mlk_dec *d)
{
	struct mlk_condition *c = &r->chunks.condition;
	uint8_t reason = mlk_dec_u8(d);
	uint64_t time_ns = mlk_dec_u64(d);

	if (d->bad)
		return;
	c->ended = true;
	c->reason = reason;
	c->end_ns = time_ns;
}

/* Losses stand in each chunk's header too: a trace that was cut knows them all the same. */
static void note_header(struct mlk_reader *r)
{
	const struct mlk_chunk_header *h = &r->chunks.header;
	struct mlk_condition *c = &r->chunks.condition;
	uint64_t frees = c->losses.count[MLK_LOST_FREE] + c->losses.count[MLK_LOST_RELEASE];

	if (h->lost_allocs > c->losses.count[MLK_LOST_ALLOC])
		c->losses.count[MLK_LOST_ALLOC] = h->lost_allocs;
	if (h->lost_frees > frees)
		c->losses.count[MLK_LOST_FREE] += h->lost_frees - frees;
	if (h->type == MLK_CHUNK_EVENTS && !c->ended && h->last_ns > c->end_ns)
		c->end_ns = h->last_ns;
}

/* Make the chunk found ready for reading records.  0, MLK_E_CORRUPT or -errno. */
static int begin_chunk(struct mlk_reader *r)
{
	const struct mlk_chunk_header *h = &r->chunks.header;
	int err = mlk_chunks_load(&r->chunks);

	if (err)
		return err;
	r->dec = (struct mlk_dec){.at = r->chunks.raw, .end = r->chunks.raw + h->raw_len};
	switch (h->type) {
	case MLK_CHUNK_META:
		decode_meta(r, &r->dec);
		break;
	case MLK_CHUNK_LOSSES:
		decode_losses(r, &r->dec);
		break;
	case MLK_CHUNK_END:
		decode_end(r, &r->dec);
		break;
	case MLK_CHUNK_THREADS:
		r->left = mlk_dec_uvar_max(&r->dec, MAX_THREADS);
		break;
	case MLK_CHUNK_EVENTS:
		mlk_coder_begin(&r->coder, h->first_ns);
		break;
	}
	r->in_chunk = records_of(h->type) != 0;
	return r->dec.bad ? MLK_E_CORRUPT : 0;
}

/* Step to the next chunk that holds what is asked for.  1, 0 at the end, or -errno. */
static int next_chunk(struct mlk_reader *r)
{
	for (;;) {
		int err = mlk_chunks_next(&r->chunks);
		unsigned int type = r->chunks.header.type;

		if (err <= 0)
			return err;
		note_header(r);
		if (!type || type > MLK_CHUNK_END) {
			r->chunks.condition.chunks_unknown++;
			continue;
		}
		if (records_of(type) && !(records_of(type) & r->types))
			continue;
		if (type == MLK_CHUNK_META && r->meta.tgid)
			continue; /* read before; the strings are lent out */
		err = begin_chunk(r);
		if (err == MLK_E_CORRUPT) {
			mlk_chunks_damaged(&r->chunks);
			r->in_chunk = false;
			continue;
		}
		if (err)
			return err;
		if (r->in_chunk)
			return 1;
	}
}

static void decode_mapping(struct mlk_reader *r, struct mlk_mapping *m, uint64_t *before)
{
	struct mlk_dec *d = &r->dec;
	size_t len = 0;
	const char *path;

	d->bad |= __builtin_add_overflow(*before, mlk_dec_uvar(d), &m->start);
	d->bad |= __builtin_add_overflow(m->start, mlk_dec_uvar(d), &m->end);
	m->offset = mlk_dec_uvar(d);
	m->perms = mlk_dec_u8(d);
	m->dev_major = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->dev_minor = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	m->inode = mlk_dec_uvar(d);
	mlk_dec_id(d, &m->id);
	path = mlk_dec_str(d, &len);
	m->path = d->bad ? "" : mlk_arena_string(&r->text, path, len);
	*before = m->end;
}

static int decode_maps(struct mlk_reader *r, struct mlk_maps *maps)
{
	uint64_t before = 0;
	struct mlk_dec *d = &r->dec;
	struct mlk_mapping *mappings;

	maps->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	maps->time_ns = mlk_dec_u64(d);
	maps->nr = (size_t)mlk_dec_uvar_max(d, MAX_MAPPINGS);
	/* Each takes 9 bytes at least: no memory for a count that cannot be true. */
	if (d->bad || maps->nr > (size_t)(d->end - d->at) / 9)
		return MLK_E_CORRUPT;
	mappings = realloc(r->mappings, (maps->nr + 1) * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	r->mappings = mappings;
	for (size_t i = 0; i < maps->nr && !d->bad; i++)
		decode_mapping(r, &mappings[i], &before);
	maps->mappings = mappings;
	r->in_chunk = false;
	return d->bad ? MLK_E_CORRUPT : 0;
}

static int decode_module(struct mlk_reader *r, struct mlk_module *m)
{
	struct mlk_dec *d = &r->dec;
	size_t len = 0;
	const char *path;
	uint64_t end;

	mlk_dec_id(d, &m->id);
	path = mlk_dec_str(d, &len);
	m->image_len = mlk_dec_uvar_max(d, MLK_MAX_IMAGE);
	m->offset = mlk_dec_uvar(d);
	m->piece_len = (uint32_t)mlk_dec_uvar_max(d, MLK_RAW_MAX);
	m->piece = mlk_dec_bytes(d, m->piece_len);
	if (d->bad || !m->id.len || __builtin_add_overflow(m->offset, m->piece_len, &end) ||
	    end > m->image_len)
		return MLK_E_CORRUPT;
	m->path = mlk_arena_string(&r->text, path, len);
	r->in_chunk = false;
	return 0;
}

static int decode_one_thread(struct mlk_reader *r, struct mlk_thread *t)
{
	struct mlk_dec *d = &r->dec;
	size_t len = 0;
	const char *name;

	t->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	t->tid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	name = mlk_dec_str(d, &len);
	if (d->bad)
		return MLK_E_CORRUPT;
	t->name = mlk_arena_string(&r->text, name, len);
	r->left--;
	return 0;
}

/* Does the chunk at hand hold another record? */
static bool more(const struct mlk_reader *r)
{
	if (!r->in_chunk)
		return false;
	if (r->chunks.header.type == MLK_CHUNK_THREADS)
		return r->left > 0;
	return r->dec.at < r->dec.end;
}

/* Decode the next record of the chunk at hand.  0, MLK_E_CORRUPT or -ENOMEM. */
static int decode_record(struct mlk_reader *r, struct mlk_record *rec)
{
	int err;

	mlk_arena_reset(&r->text);
	rec->type = records_of(r->chunks.header.type);
	switch (rec->type) {
	case MLK_RECORD_EVENT:
		return mlk_events_decode(&r->coder, &r->dec, &rec->event, r->stack);
	case MLK_RECORD_MAPS:
		err = decode_maps(r, &rec->maps);
		break;
	case MLK_RECORD_MODULE:
		err = decode_module(r, &rec->module);
		break;
	default:
		err = decode_one_thread(r, &rec->thread);
		break;
	}
	return err ? err : r->text.failed ? -ENOMEM : 0;
}

int mlk_reader_next(struct mlk_reader *r, struct mlk_record *rec)
{
	for (;;) {
		int err;

		while (!more(r)) {
			err = next_chunk(r);
			if (err <= 0)
				return err;
		}
		err = decode_record(r, rec);
		if (!err)
			return 1;
		r->in_chunk = false;
		if (err != MLK_E_CORRUPT)
			return err;
		mlk_chunks_damaged(&r->chunks);
	}
}

void mlk_reader_rewind(struct mlk_reader *r, unsigned int types)
{
	mlk_chunks_rewind(&r->chunks);
	r->in_chunk = false;
	r->types = types;
}

/* Look for META, which begins every trace, and for one whole chunk at all. */
static int read_start(struct mlk_reader *r)
{
	struct mlk_record none;
	int err;

	mlk_reader_rewind(r, 0);
	err = mlk_reader_next(r, &none);
	if (err < 0)
		return err;
	if (!r->chunks.condition.chunks)
		return MLK_E_EMPTY;
	r->meta.start_ns = r->chunks.file.start_ns;
	r->meta.realtime_ns = r->chunks.file.realtime_ns;
	mlk_reader_rewind(r, MLK_RECORD_ALL);
	return r->meta_text.failed ? -ENOMEM : 0;
}

static int open_source(struct mlk_reader **out, const struct mlk_source *source)
{
	struct mlk_reader *r = calloc(1, sizeof(*r));
	struct mlk_source opened = *source;
	int err;

	*out = NULL;
	if (!r) {
		mlk_source_close(&opened);
		return -ENOMEM;
	}
	r->chunks.source = opened;
	r->meta.command = r->meta.exe = r->meta.comm = r->meta.hostname = "";
	r->meta.kernel = r->meta.machine = r->meta.recorder = r->meta.backend = "";
	err = mlk_chunks_open(&r->chunks);
	if (!err)
		err = read_start(r);
	if (err) {
		mlk_reader_free(r);
		return err;
	}
	*out = r;
	return 0;
}

int mlk_reader_open_file(struct mlk_reader **out, const char *path)
{
	struct mlk_source source;
	int err = mlk_source_open(&source, path);

	*out = NULL;
	return err ? err : open_source(out, &source);
}

int mlk_reader_open_mem(struct mlk_reader **out, const void *buf, size_t len)
{
	struct mlk_source source;

	mlk_source_open_mem(&source, buf, len);
	return open_source(out, &source);
}

const struct mlk_meta *mlk_reader_meta(const struct mlk_reader *r)
{
	return &r->meta;
}

const struct mlk_condition *mlk_reader_condition(const struct mlk_reader *r)
{
	return &r->chunks.condition;
}

uint64_t mlk_reader_size(const struct mlk_reader *r)
{
	return r->chunks.source.size;
}

uint64_t mlk_reader_offset(const struct mlk_reader *r)
{
	return r->chunks.chunk_at;
}

void mlk_reader_free(struct mlk_reader *r)
{
	if (!r)
		return;
	mlk_chunks_release(&r->chunks);
	mlk_coder_release(&r->coder);
	mlk_arena_release(&r->meta_text);
	mlk_arena_release(&r->text);
	free(r->mappings);
	free(r);
}
