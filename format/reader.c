/* reader.c - chunks to records */
#include "format/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/reader_state.h"
#include "format/record/beside.h"
#include "format/record/code.h"
#include "format/record/code_names.h"
#include "format/record/marks.h"
#include "format/record/records.h"
#include "format/record/regions.h"

/* Chunks of these are wanted by the reader itself, whatever is requested. */
#define OWN (MLK_RECORD_META | MLK_RECORD_LOSSES | MLK_RECORD_END | MLK_RECORD_INDEX)

void mlk_reader_note_header(struct mlk_reader *r)
{
	const struct mlk_chunk *h = &r->chunks.header;
	struct mlk_condition *c = &r->chunks.condition;
	uint64_t frees = c->losses.count[MLK_LOST_FREE] + c->losses.count[MLK_LOST_RELEASE];

	if (h->lost_allocs > c->losses.count[MLK_LOST_ALLOC])
		c->losses.count[MLK_LOST_ALLOC] = h->lost_allocs;
	if (h->lost_frees > frees)
		c->losses.count[MLK_LOST_FREE] += h->lost_frees - frees;
	if (h->type == MLK_CHUNK_EVENTS && !c->ended && h->last_ns > c->end_ns)
		c->end_ns = h->last_ns;
}

/* Were only the heads of the chunk's events requested? */
static bool wants_heads(const struct mlk_reader *r)
{
	const unsigned int heads = MLK_RECORD_HEAD | MLK_RECORD_UNWOUND;

	return r->chunks.header.type == MLK_CHUNK_EVENTS && (r->types & heads) == MLK_RECORD_HEAD;
}

/* May the chunk have the stacks that were requested in itself? */
static bool wants_summary(const struct mlk_reader *r)
{
	return r->chunks.header.type == MLK_CHUNK_EVENTS && r->types & MLK_RECORD_UNWOUND &&
	       r->meta.dropped == MLK_DROPPED_ALL;
}

/* Was a record of @type, which *@rec holds now, asked for? */
static int give(const struct mlk_reader *r, struct mlk_record *rec, enum mlk_record_type type)
{
	rec->type = type;
	return (r->types & type) != 0;
}

static int give_damaged(struct mlk_reader *r, struct mlk_record *rec)
{
	mlk_chunks_damaged(&r->chunks);
	if (mlk_reader_records_of(r->chunks.header.type) & OWN)
		r->chunks.condition.lost_always++;
	r->step = STEP_FIND;
	return give(r, rec, MLK_RECORD_DAMAGED);
}

/* The steps return 1 for a record, 0 to go on, or -errno. */

static int find_chunk(struct mlk_reader *r, struct mlk_record *rec)
{
	uint64_t from = r->chunks.at, to;
	int found;

	if (r->single) {
		r->step = STEP_END;
		return 0;
	}
	found = mlk_chunks_next(&r->chunks);
	if (found < 0)
		return found;
	r->step = found ? STEP_START : STEP_END;
	to = found ? r->chunks.chunk_at : r->chunks.at;
	if (found)
		mlk_reader_note_header(r);
	if (to <= from)
		return 0;
	rec->skipped = (struct mlk_skipped){.offset = from, .len = to - from};
	return give(r, rec, MLK_RECORD_SKIPPED);
}

static int start_chunk(struct mlk_reader *r, struct mlk_record *rec)
{
	const struct mlk_chunk *h = &r->chunks.header;
	unsigned int records = mlk_reader_records_of(h->type);

	if (!records)
		r->chunks.condition.chunks_unknown++;
	if (records & (r->types | OWN) || wants_heads(r) || wants_summary(r))
		r->step = STEP_LOAD;
	else
		r->step = r->checks && !(records & r->unchecked) ? STEP_CHECK : STEP_FIND;
	rec->chunk = *h;
	rec->chunk.offset = r->chunks.chunk_at;
	rec->chunk.records = records;
	return give(r, rec, MLK_RECORD_CHUNK);
}

/* What the chunk holds was not requested, but whether it is whole. */
static int check_chunk(struct mlk_reader *r, struct mlk_record *rec)
{
	int err = mlk_chunks_fetch(&r->chunks);

	r->step = STEP_FIND;
	return err == MLK_E_CORRUPT ? give_damaged(r, rec) : err;
}

static void start_index(struct mlk_reader *r)
{
	mlk_dec_uvar(&r->dec); /* the INDEX chunk before */
	r->left = mlk_dec_uvar(&r->dec);
	if (!(r->types & MLK_RECORD_INDEX))
		r->left = 0; /* that its checksum is right is all that is asked here */
	r->entry = (struct mlk_entry){0};
}

static int decode_entry(struct mlk_reader *r, struct mlk_entry *entry)
{
	mlk_index_decode(&r->dec, &r->entry);
	*entry = r->entry;
	entry->records = mlk_reader_records_of(entry->type);
	return r->dec.bad ? MLK_E_CORRUPT : 0;
}

/* Is the current chunk one that the decoder of events reads? */
static bool holds_events(const struct mlk_reader *r)
{
	unsigned int type = r->chunks.header.type;

	return type == MLK_CHUNK_EVENTS || type == MLK_CHUNK_STACKS || type == MLK_CHUNK_OVERRUNS;
}

static int decode_event(struct mlk_reader *r, struct mlk_event *event)
{
	int err = mlk_decoder_next(&r->events, event);

	if (!err && r->chunks.header.type != MLK_CHUNK_EVENTS && event->kind != MLK_ALLOC)
		err = MLK_E_CORRUPT;
	return err;
}

static int decode_overrun(struct mlk_reader *r, struct mlk_overrun *overrun)
{
	int err = decode_event(r, &overrun->at);

	return err ? err : mlk_decode_overrun(&r->heads, overrun);
}

/* The next record of a chunk that holds_events(). */
static int decode_one(struct mlk_reader *r, struct mlk_record *rec)
{
	return r->chunks.header.type == MLK_CHUNK_OVERRUNS ? decode_overrun(r, &rec->overrun)
							   : decode_event(r, &rec->event);
}

/* Begin to read events that have no registers and stacks.  Returns as the steps. */
static int start_summary(struct mlk_reader *r, struct mlk_record *rec)
{
	const struct mlk_chunk *h = &r->chunks.header;
	int err;

	mlk_arena_reset(&r->text);
	err = mlk_summary_decode(&r->summary, &r->dec, h->first_ns, &r->text, &r->unwound,
				 &r->stacks);
	if (!err && r->text.failed)
		err = -ENOMEM;
	if (err)
		return err == MLK_E_CORRUPT ? give_damaged(r, rec) : err;
	r->step = STEP_SUMMARY;
	r->stacks.events_crc = h->payload_crc;
	rec->unwound = r->stacks;
	return give(r, rec, MLK_RECORD_UNWOUND);
}

/* The next event of such a chunk, as a head if those are wanted. */
static int next_summarized(struct mlk_reader *r, struct mlk_record *rec)
{
	struct mlk_event *event = &rec->event;
	int err;

	if (!mlk_sum_more(&r->summary)) {
		r->step = STEP_FIND;
		return 0;
	}
	memset(event, 0, sizeof(*event));
	err = mlk_sum_next(&r->summary, event);
	if (err == MLK_E_CORRUPT)
		return give_damaged(r, rec);
	if (err) {
		r->step = STEP_FIND;
		return err;
	}
	if (event->kind == MLK_ALLOC)
		event->nr_regs = MLK_SP_REG + 1; /* the least: all are 0 */
	return give(r, rec, r->types & MLK_RECORD_HEAD ? MLK_RECORD_HEAD : MLK_RECORD_EVENT);
}

static int load_chunk(struct mlk_reader *r, struct mlk_record *rec)
{
	const struct mlk_chunk *h = &r->chunks.header;
	int err = mlk_chunks_load(&r->chunks);

	if (!err) {
		r->dec = (struct mlk_dec){.at = r->chunks.raw, .end = r->chunks.raw + h->raw_len};
		r->left = 1;
		if (h->type == MLK_CHUNK_EVENTS && mlk_is_summary(&r->dec))
			return start_summary(r, rec);
		if (h->type == MLK_CHUNK_THREADS || h->type == MLK_CHUNK_ORIGINS ||
		    h->type == MLK_CHUNK_MEMORY || h->type == MLK_CHUNK_ACCOUNTS ||
		    h->type == MLK_CHUNK_MARKS || h->type == MLK_CHUNK_SMAPS ||
		    h->type == MLK_CHUNK_CODE)
			r->left = mlk_dec_uvar_max(&r->dec, MLK_MAX_THREADS);
		else if (h->type == MLK_CHUNK_INDEX)
			start_index(r);
		else if (h->type == MLK_CHUNK_OVERRUNS)
			mlk_overruns_heads(&r->dec, &r->heads);
		r->memory = (struct mlk_memory_state){.time_ns = h->first_ns};
		r->mark_ns = h->first_ns;
		if (holds_events(r))
			err = mlk_decoder_begin(&r->events, &r->dec, h->first_ns, wants_heads(r));
	}
	if (err && err != MLK_E_CORRUPT)
		return err;
	if (err || r->dec.bad)
		return give_damaged(r, rec);
	r->step = wants_heads(r) ? STEP_HEADS : STEP_RECORDS;
	return 0;
}

static int decode_meta(struct mlk_reader *r)
{
	struct mlk_meta meta = r->meta;
	int err;

	if (r->meta_read)
		return 0; /* the strings are lent out; and a trace of many must not fill our memory
			   */
	err = mlk_decode_meta(&r->dec, &r->meta_text, &meta);
	if (err) {
		mlk_arena_reset(&r->meta_text);
		return err;
	}
	r->meta_read = true;
	r->meta = meta;
	return 0;
}

static int decode_losses(struct mlk_reader *r, struct mlk_losses *losses)
{
	int err = mlk_decode_losses(&r->dec, losses);

	losses->first_ns = r->chunks.header.first_ns;
	losses->last_ns = r->chunks.header.last_ns;
	if (!err)
		r->chunks.condition.losses = *losses;
	return err;
}

static int decode_end(struct mlk_reader *r, struct mlk_ending *end)
{
	struct mlk_condition *c = &r->chunks.condition;
	int err = mlk_decode_end(&r->dec, end);

	if (err)
		return err;
	c->ended = true;
	c->reason = end->reason;
	c->end_ns = end->time_ns;
	return 0;
}

static int decode_unwound(struct mlk_reader *r, struct mlk_unwound *unwound)
{
	int err = mlk_unwound_decode(&r->dec, &r->text, &r->unwound, unwound);

	if (!err)
		r->unwound_ns = unwound->first_ns;
	return err;
}

static int decode_smaps(struct mlk_reader *r, struct mlk_smaps *smaps)
{
	int err = mlk_decode_smaps(&r->dec, &r->text, &r->smaps, smaps);

	smaps->time_ns = r->chunks.header.last_ns;
	return err;
}

/* Decode the next record of the current chunk, which is no event. */
static int decode_record(struct mlk_reader *r, struct mlk_record *rec)
{
	r->left--;
	switch (r->chunks.header.type) {
	case MLK_CHUNK_META:
		return decode_meta(r);
	case MLK_CHUNK_MAPS:
		return mlk_decode_maps(&r->dec, &r->text, &r->mappings, &rec->maps);
	case MLK_CHUNK_MODULE:
		return mlk_decode_module(&r->dec, &r->text, &rec->module);
	case MLK_CHUNK_THREADS:
		return mlk_decode_thread(&r->dec, &r->text, &rec->thread);
	case MLK_CHUNK_ORIGINS:
		return mlk_decode_origin(&r->dec, &r->text, &rec->origin);
	case MLK_CHUNK_MEMORY:
		return mlk_decode_memory(&r->dec, &r->memory, &rec->memory);
	case MLK_CHUNK_ACCOUNTS:
		rec->account.time_ns = r->chunks.header.last_ns;
		return mlk_decode_account(&r->dec, &rec->account);
	case MLK_CHUNK_MARKS:
		return mlk_decode_mark(&r->dec, &r->text, &r->mark_ns, &rec->mark);
	case MLK_CHUNK_REGIONS:
		return mlk_regions_decode(&r->dec, &r->text, &r->mappings, &rec->regions);
	case MLK_CHUNK_POINTERS:
		return mlk_pointers_decode(&r->dec, &r->reach, &rec->pointers);
	case MLK_CHUNK_PASS:
		return mlk_pass_decode(&r->dec, &r->text, &r->reach, &rec->pass);
	case MLK_CHUNK_HEAP:
		return mlk_heap_decode(&r->dec, &r->text, &r->heap, &rec->heap);
	case MLK_CHUNK_SMAPS:
		return decode_smaps(r, &rec->smaps);
	case MLK_CHUNK_CODE_NAMES:
		return mlk_code_names_decode(&r->dec, &r->text, &r->names, &rec->code_names);
	case MLK_CHUNK_CODE:
		return mlk_code_decode(&r->dec, &r->text, &rec->code);
	case MLK_CHUNK_INTERPRETERS:
		return mlk_interpreter_decode(&r->dec, &r->text, &rec->interpreter);
	case MLK_CHUNK_LOSSES:
		return decode_losses(r, &rec->losses);
	case MLK_CHUNK_INDEX:
		return decode_entry(r, &rec->entry);
	case MLK_CHUNK_UNWOUND:
		return decode_unwound(r, &rec->unwound);
	default:
		return decode_end(r, &rec->end);
	}
}

/* All is given but perhaps, of an UNWOUND chunk, the heads behind it. */
static int finish_records(struct mlk_reader *r, struct mlk_record *rec)
{
	int err;

	r->step = STEP_FIND;
	if (r->chunks.header.type != MLK_CHUNK_UNWOUND || !(r->types & MLK_RECORD_HEAD))
		return 0;
	err = mlk_decoder_begin(&r->events, &r->dec, r->unwound_ns, true);
	if (err)
		return err == MLK_E_CORRUPT ? give_damaged(r, rec) : err;
	r->step = STEP_HEADS;
	return 0;
}

static int next_record(struct mlk_reader *r, struct mlk_record *rec)
{
	bool events = holds_events(r);
	int err;

	if (events ? !mlk_decoder_more(&r->events) : !r->left)
		return finish_records(r, rec);
	mlk_arena_reset(&r->text);
	err = events ? decode_one(r, rec) : decode_record(r, rec);
	if (!err && r->text.failed)
		err = -ENOMEM;
	if (err == MLK_E_CORRUPT)
		return give_damaged(r, rec);
	if (!err)
		return give(r, rec, mlk_reader_records_of(r->chunks.header.type));
	r->step = STEP_FIND;
	return err;
}

/* The same of a chunk of which heads are wanted: there are many, and little is to be done. */
static int next_head(struct mlk_reader *r, struct mlk_record *rec)
{
	int err;

	if (!mlk_decoder_more(&r->events)) {
		r->step = STEP_FIND;
		return 0;
	}
	err = mlk_decoder_next_head(&r->events, &rec->event);
	if (err == MLK_E_CORRUPT)
		return give_damaged(r, rec);
	rec->type = MLK_RECORD_HEAD;
	if (err)
		r->step = STEP_FIND;
	return err ? err : 1;
}

int mlk_reader_next(struct mlk_reader *r, struct mlk_record *rec)
{
	int given = 0;

	while (!given && r->step != STEP_END) {
		switch (r->step) {
		case STEP_FIND:
			given = find_chunk(r, rec);
			break;
		case STEP_START:
			given = start_chunk(r, rec);
			break;
		case STEP_CHECK:
			given = check_chunk(r, rec);
			break;
		case STEP_LOAD:
			given = load_chunk(r, rec);
			break;
		case STEP_HEADS:
			given = next_head(r, rec);
			break;
		case STEP_SUMMARY:
			given = next_summarized(r, rec);
			break;
		default:
			given = next_record(r, rec);
			break;
		}
	}
	return given;
}

void mlk_reader_rewind(struct mlk_reader *r, unsigned int types)
{
	mlk_chunks_rewind(&r->chunks);
	r->step = STEP_FIND;
	r->types = types;
	r->single = r->checks = false;
}

void mlk_reader_check_others(struct mlk_reader *r, unsigned int but)
{
	r->checks = true;
	r->unchecked = but;
}
