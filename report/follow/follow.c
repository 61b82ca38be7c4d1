/* follow.c - see follow.h */
#include "report/follow/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/decode/event_unwinder.h"
#include "report/decode/unwound_chunk.h"

#define HOLD_NS	  300000000u  /* more than a recorder keeps what it is to write */
#define MOST_HELD (8u << 20)  /* bytes of the file, of which the first need not wait */
#define MOST_STEP 16u	      /* chunks, so that the caller can do something else between them */
#define KEPT_NS	  450000000u  /* what a recorder keeps, until it is seen here, at most */
#define LATE_NS	  1000000000u /* more than an event may be earlier than one before it */
#define NEW_MAPS  64u	      /* snapshots until it is looked which are replaced */

/* A chunk with events that waits. */
struct held {
	struct mlk_entry chunk;
	struct mlk_entry unwound; /* the one that has its stacks; records 0: it has them itself */
	uint32_t crc;
	uint64_t seen_ns;
};

struct follow {
	struct mlk_reader *trace;  /* at what was written last */
	struct mlk_reader *behind; /* the same trace, at the events */
	struct replay *leaks;
	struct event_unwinder *unwinder;
	struct stack_history *previous;
	struct batch batch;	 /* where the registers were dropped: the current chunk's events */
	struct mlk_entry stacks; /* where they were: the last chunk of stacks, unwound */
	struct held *held;
	size_t first, nr, room;	    /* of them: those from first on wait */
	uint64_t damaged;	    /* chunks with events that do not decode */
	size_t kept_maps;	    /* snapshots that were needed when that was looked at */
	uint64_t first_ns, last_ns; /* of the events that were taken in */
	bool new_layout, of_kernel, ended;
	struct follow_opts opts;
};

static int start_unwinder(struct follow *f)
{
	bool raw = mlk_reader_meta(f->trace)->stack_mode == MLK_STACK_RAW;
	int err = stack_history_new(&f->previous, NULL, NULL);

	return err ? err : event_unwinder_new(&f->unwinder, f->leaks->dw, f->leaks->spaces, raw);
}

int follow_new(struct follow **out, struct mlk_reader *trace, const struct follow_opts *opts)
{
	const struct mlk_meta *meta = mlk_reader_meta(trace);
	struct follow *f = calloc(1, sizeof(*f));
	int err;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	f->trace = trace;
	f->opts = *opts;
	f->of_kernel = meta->of_kernel;
	f->new_layout = true;
	err = replay_new(&f->leaks, trace, &opts->replay);
	if (!err) {
		f->leaks->spaces->grows = true;
		f->leaks->chosen =
			block_filter_of(&opts->replay.choice, f->leaks->threads, meta->start_ns, 0);
		err = mlk_reader_clone(&f->behind, trace);
	}
	if (!err)
		err = start_unwinder(f);
	if (err) {
		follow_free(f);
		return err;
	}
	mlk_reader_rewind(trace, MLK_RECORD_CODE_NAMES | MLK_RECORD_MAPS | MLK_RECORD_MODULE |
					 MLK_RECORD_THREAD | MLK_RECORD_LOSSES | MLK_RECORD_ORIGIN |
					 MLK_RECORD_MEMORY | MLK_RECORD_CHUNK | MLK_RECORD_CODE |
					 MLK_RECORD_INTERPRETER | opts->records);
	*out = f;
	return 0;
}

static struct mlk_entry entry_of(const struct mlk_chunk *chunk)
{
	return (struct mlk_entry){.offset = chunk->offset,
				  .records = chunk->records,
				  .type = chunk->type,
				  .seq = chunk->seq,
				  .first_ns = chunk->first_ns,
				  .last_ns = chunk->last_ns,
				  .nr_records = chunk->nr_records};
}

/* What has the stacks of @chunk, if the trace has no registers to unwind them from. */
static struct mlk_entry stacks_of(const struct follow *f, const struct mlk_entry *chunk)
{
	uint64_t dropped = mlk_reader_meta(f->trace)->dropped;

	if (!dropped || !(chunk->records & MLK_RECORD_EVENT))
		return (struct mlk_entry){0};
	return dropped == MLK_DROPPED_ALL ? *chunk : f->stacks;
}

static int hold_chunk(struct follow *f, const struct mlk_chunk *chunk, uint64_t now_ns)
{
	struct held held = {.chunk = entry_of(chunk), .crc = chunk->payload_crc, .seen_ns = now_ns};

	if (chunk->records & MLK_RECORD_UNWOUND)
		f->stacks = held.chunk;
	if (!(chunk->records & (MLK_RECORD_EVENT | MLK_RECORD_STACK)))
		return 0;
	held.unwound = stacks_of(f, &held.chunk);
	/* those that were taken in make room before the array grows */
	if (f->first > f->nr / 2) {
		memmove(f->held, f->held + f->first, (f->nr - f->first) * sizeof(*f->held));
		f->nr -= f->first;
		f->first = 0;
	}
	return array_append(&f->held, &f->nr, &f->room, &held, sizeof(held));
}

/* Take in all that is there but the events. */
static int read_ahead(struct follow *f, uint64_t now_ns)
{
	struct mlk_record record;
	int more, err = 0;

	while (!err && (more = mlk_reader_next(f->trace, &record)) != 0) {
		if (more < 0)
			return more;
		if (record.type == MLK_RECORD_CHUNK) {
			err = hold_chunk(f, &record.chunk, now_ns);
			continue;
		}
		if (record.type & f->opts.records) {
			err = f->opts.note(f->opts.arg, &record);
			continue;
		}
		f->new_layout |=
			record.type & (MLK_RECORD_MAPS | MLK_RECORD_MODULE | MLK_RECORD_CODE_NAMES);
		err = replay_note_layout(f->leaks, &record);
	}
	return err;
}

/* @event, whose stack is @id if it is an ALLOC. */
static int apply_event(struct follow *f, const struct mlk_event *event, uint32_t id)
{
	int err = f->opts.event ? f->opts.event(f->opts.arg, event, id) : 0;

	if (!f->first_ns || event->time_ns < f->first_ns)
		f->first_ns = event->time_ns;
	if (event->time_ns > f->last_ns)
		f->last_ns = event->time_ns;
	return err ? err : replay_event(f->leaks, event, id);
}

static int unwind_event(struct follow *f, struct mlk_event *event)
{
	uint32_t id = 0;
	int err = 0;

	/* A new process may have the number of one that has ended. */
	if (event->kind == MLK_EXEC || event->kind == MLK_FORK)
		event_unwinder_forget(f->unwinder, event->tgid);
	if (event->kind == MLK_EXIT)
		event_unwinder_end(f->unwinder, event->tgid);
	if (event->kind == MLK_ALLOC) {
		err = event_unwinder_stack(f->unwinder, event, &id);
		if (!f->of_kernel)
			event->regs[MLK_ORIGIN_REG] = 0; /* it is a register of the program's */
	}
	return err ? err : apply_event(f, event, id);
}

static int unwind_chunk(struct follow *f, const struct mlk_entry *chunk)
{
	struct mlk_record record;
	int more = 1, err;

	event_unwinder_begin(f->unwinder, f->previous);
	err = mlk_reader_seek(f->behind, chunk, MLK_RECORD_EVENT | MLK_RECORD_STACK);
	while (!err && more && (more = mlk_reader_next(f->behind, &record)) != 0) {
		if (more < 0)
			return more;
		if (record.type == MLK_RECORD_EVENT)
			err = unwind_event(f, &record.event);
		else
			event_unwinder_add(f->unwinder, &record.event);
	}
	if (err != MLK_E_CORRUPT)
		f->damaged += mlk_reader_condition(f->behind)->chunks_lost;
	else
		f->damaged++; /* it is not what it was a moment ago */
	return err == MLK_E_CORRUPT ? 0 : err;
}

/* The events of @held, whose stacks were unwound when their registers were dropped. */
static int take_unwound(struct follow *f, const struct held *held)
{
	struct mlk_event event = {0};
	struct batch *batch = &f->batch;
	int err;

	batch_clear(batch);
	batch->chunk = held->chunk;
	batch->chunk_crc = held->crc;
	batch->unwound = held->unwound;
	err = unwound_chunk_read(f->behind, f->leaks->images, UINT64_MAX, batch);
	if (!err)
		err = batch_intern(batch, f->leaks->dw, &batch->ids, &batch->ids_room);
	for (size_t i = 0; !err && i < batch->nr_events; i++) {
		const struct batch_event *from = &batch->events[i];

		batch_get_event(from, &event);
		err = apply_event(f, &event, from->kind == MLK_ALLOC ? batch->ids[from->stack] : 0);
	}
	return err;
}

static int read_events(struct follow *f, const struct held *held)
{
	int err = held->unwound.records ? take_unwound(f, held) : MLK_E_CORRUPT;

	/* as the report, which takes the events without their stacks then */
	return err == MLK_E_CORRUPT ? unwind_chunk(f, &held->chunk) : err;
}

/* Need the first of those that wait not wait any longer? */
static bool is_due(const struct follow *f, uint64_t now_ns)
{
	const struct held *held = &f->held[f->first];

	if (f->first == f->nr)
		return false;
	/* modules stand at the end of a trace whose registers were dropped */
	if (mlk_reader_meta(f->trace)->dropped)
		return f->ended;
	return f->ended || now_ns >= held->seen_ns + HOLD_NS ||
	       mlk_reader_size(f->trace) - held->chunk.offset > MOST_HELD;
}

static int read_held(struct follow *f, uint64_t now_ns)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < MOST_STEP && is_due(f, now_ns); i++) {
		if (f->new_layout)
			err = replay_use_layout(f->leaks);
		f->new_layout = false;
		if (!err)
			err = read_events(f, &f->held[f->first]);
		f->first++;
	}
	/* the stacks of what waits stand before it */
	if (!mlk_reader_meta(f->trace)->dropped)
		mlk_reader_forget(f->trace, f->first < f->nr ? f->held[f->first].chunk.offset
							     : mlk_reader_offset(f->trace));
	return err;
}

/* A program that is executed again and again has another layout each time. */
static void forget_layouts(struct follow *f)
{
	struct address_spaces *spaces = f->leaks->spaces;

	if (f->new_layout || f->last_ns < LATE_NS ||
	    spaces->nr_snapshots < 2 * f->kept_maps + NEW_MAPS)
		return;
	address_spaces_forget_replaced(spaces, f->last_ns - LATE_NS);
	f->kept_maps = spaces->nr_snapshots;
}

/* Will nothing be appended any more to what is there when this returns? */
static bool is_last(const struct follow *f)
{
	/* a stream is not a file, and a file has no writer once it is not locked */
	return mlk_reader_condition(f->trace)->ended || mlk_reader_stream_ended(f->trace) ||
	       (!mlk_reader_is_stream(f->trace) && !mlk_reader_is_growing(f->trace));
}

int follow_step(struct follow *f, uint64_t now_ns)
{
	bool last = is_last(f);
	int err = mlk_reader_follow(f->trace, last);

	if (!err)
		err = mlk_reader_follow(f->behind, last);
	if (!err)
		err = read_ahead(f, now_ns);
	f->ended = last;
	if (!err)
		err = read_held(f, now_ns);
	forget_layouts(f);
	f->leaks->condition = *mlk_reader_condition(f->trace);
	f->leaks->condition.chunks_lost += f->damaged;
	if (!err && f->opts.keep_ended)
		err = replay_forget_ended(f->leaks, f->opts.keep_ended, f->opts.forgot,
					  f->opts.forgot_arg);
	if (err)
		return err;
	if (is_due(f, now_ns))
		return FOLLOW_BUSY;
	if (!f->ended)
		return FOLLOW_IDLE;
	live_finish(f->leaks->live);
	return FOLLOW_ENDED;
}

struct replay *follow_replay(const struct follow *f)
{
	return f->leaks;
}

uint64_t follow_last_ns(const struct follow *f)
{
	return f->last_ns;
}

/* The first sample of memory is made when all is set up, and before a command runs. */
uint64_t follow_begun_ns(const struct follow *f)
{
	const uint64_t start_ns = mlk_reader_meta(f->trace)->start_ns;
	uint64_t begun_ns = f->leaks->memory.first_ns;

	if (f->first_ns && f->first_ns < begun_ns)
		begun_ns = f->first_ns;
	return begun_ns > start_ns ? begun_ns : start_ns;
}

uint64_t follow_known_ns(const struct follow *f, uint64_t now_ns)
{
	uint64_t known_ns = f->first < f->nr ? f->held[f->first].seen_ns : now_ns;

	if (f->ended)
		return now_ns;
	known_ns -= known_ns < KEPT_NS ? known_ns : KEPT_NS;
	return known_ns > f->last_ns ? known_ns : f->last_ns;
}

void follow_free(struct follow *f)
{
	if (!f)
		return;
	event_unwinder_free(f->unwinder);
	stack_history_free(f->previous);
	mlk_reader_free(f->behind);
	replay_free(f->leaks);
	batch_release(&f->batch);
	free(f->held);
	free(f);
}
