/* writer.c - records to the payloads of chunks */
#include "format/writer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "format/record/marks.h"
#include "format/record/memory.h"
#include "format/record/records.h"

#define MOST_ACCOUNTS 16384 /* in a chunk: a megabyte */

static void count_losses(const struct mlk_losses *l, struct mlk_chunk *h)
{
	h->lost_allocs = l->count[MLK_LOST_ALLOC];
	h->lost_frees = l->count[MLK_LOST_FREE] + l->count[MLK_LOST_RELEASE];
	for (int i = 0; i < MLK_LOSS_NR; i++)
		h->lost_others += l->count[i];
	h->lost_others -= h->lost_allocs + h->lost_frees;
}

int mlk_writer_put(struct mlk_writer *w, struct mlk_chunk *h, struct mlk_enc *raw)
{
	h->salt = w->salt;
	count_losses(&w->losses, h);
	return mlk_chunk_out_put(w->out, h, raw, false);
}

int mlk_writer_put_single(struct mlk_writer *w, enum mlk_chunk_type type, uint64_t time_ns,
			  struct mlk_enc *raw)
{
	struct mlk_chunk h = {
		.type = type, .first_ns = time_ns, .last_ns = time_ns, .nr_records = 1};

	return mlk_writer_put(w, &h, raw);
}

static int write_header(int fd, uint32_t salt, const struct mlk_meta *m)
{
	const struct mlk_header h = {
		.major = MLK_MAJOR,
		.minor = MLK_MINOR,
		.len = MLK_FILE_HEADER,
		.salt = salt,
		/* the kernel's blocks are no mappings */
		.required = MLK_REQUIRED | (m->of_kernel ? 0 : MLK_REQUIRED_PAGES),
		.stack_mode = (uint32_t)m->stack_mode,
		.realtime_ns = m->realtime_ns,
		.start_ns = m->start_ns,
	};

	return mlk_header_write(fd, &h);
}

int mlk_writer_open(struct mlk_writer **out, int fd, const struct mlk_meta *meta, int zstd_level)
{
	struct mlk_enc payload = {0};
	struct mlk_writer *w;
	int err;

	*out = NULL;
	if (!mlk_meta_is_valid(meta))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->losses_ns = meta->start_ns;
	w->last_ns = meta->start_ns;
	w->now_ns = meta->start_ns;
	w->events.filter.mode = (enum mlk_stack_mode)meta->stack_mode;
	err = getrandom(&w->salt, sizeof(w->salt), 0) == (ssize_t)sizeof(w->salt) ? 0 : -errno;
	if (!err)
		err = write_header(fd, w->salt, meta);
	if (!err)
		err = mlk_chunk_out_new(&w->out, fd, MLK_FILE_HEADER, zstd_level);
	if (!err) {
		mlk_meta_encode(&payload, meta);
		err = mlk_writer_put_single(w, MLK_CHUNK_META, meta->start_ns, &payload);
	}
	if (!err)
		err = mlk_chunk_out_error(w->out, true);
	if (err)
		mlk_writer_free(w);
	else
		*out = w;
	return err;
}

static bool losses_changed(const struct mlk_losses *a, const struct mlk_losses *b)
{
	return memcmp(a->count, b->count, sizeof(a->count)) ||
	       memcmp(a->skipped, b->skipped, sizeof(a->skipped));
}

static void encode_counts(struct mlk_enc *e, const uint64_t *counts, size_t nr)
{
	mlk_enc_uvar(e, nr);
	for (size_t i = 0; i < nr; i++)
		mlk_enc_uvar(e, counts[i]);
}

/* Write the losses, with the time in which they grew, if they did. */
static int flush_losses(struct mlk_writer *w)
{
	struct mlk_losses *l = &w->losses;
	struct mlk_chunk h = {
		.type = MLK_CHUNK_LOSSES,
		.first_ns = l->first_ns ? l->first_ns : w->losses_ns,
		.last_ns = l->last_ns ? l->last_ns : w->last_ns,
		.nr_records = 1,
	};
	struct mlk_enc e = {0};

	if (!losses_changed(l, &w->losses_written))
		return 0;
	encode_counts(&e, l->count, MLK_LOSS_NR);
	encode_counts(&e, l->skipped, MLK_SKIP_NR);
	encode_counts(&e, l->skipped_bytes, MLK_SKIP_NR);
	w->losses_written = *l;
	w->losses_ns = h.last_ns;
	return mlk_writer_put(w, &h, &e);
}

static int flush_events(struct mlk_writer *w)
{
	struct mlk_chunk h = {
		.type = MLK_CHUNK_EVENTS,
		.first_ns = w->first_ns,
		.last_ns = w->last_ns,
		.nr_records = w->nr_events,
	};
	struct mlk_enc payload = {0};
	int err;

	if (w->err || !w->nr_events)
		return w->err ? w->err : mlk_chunk_out_error(w->out, false);
	err = mlk_writer_flush_codes(w);
	if (err)
		return err;
	mlk_encoder_finish(&w->events, &payload);
	w->nr_events = 0;
	err = mlk_writer_put(w, &h, &payload);
	return err ? err : flush_losses(w);
}

static int flush_beside(struct mlk_writer *w, struct mlk_beside *b)
{
	struct mlk_chunk h;
	struct mlk_enc payload = {0};

	return mlk_beside_take(b, &h, &payload) ? mlk_writer_put(w, &h, &payload) : 0;
}

static int add_beside(struct mlk_writer *w, struct mlk_beside *b, const struct mlk_filter *filter,
		      const struct mlk_event *event, const struct mlk_overrun *overrun)
{
	int err = mlk_beside_add(b, filter, event, overrun);

	return !err && mlk_beside_full(b) ? flush_beside(w, b) : err;
}

int mlk_writer_stack(struct mlk_writer *w, const struct mlk_event *stack, uint64_t known)
{
	struct mlk_filter filter = w->events.filter;
	struct mlk_event event = *stack;

	event.addr = 0;
	event.size = known;
	if (known == 1u << MLK_SP_REG && filter.mode == MLK_STACK_FILTERED)
		filter.mode = MLK_STACK_REDACTED; /* no function's frame begins there */
	return add_beside(w, &w->stacks, &filter, &event, NULL);
}

int mlk_writer_overrun(struct mlk_writer *w, const struct mlk_overrun *overrun)
{
	return add_beside(w, &w->overruns, &w->events.filter, &overrun->at, overrun);
}

int mlk_writer_event(struct mlk_writer *w, const struct mlk_event *event)
{
	int err;

	if (w->err)
		return w->err;
	if (!w->nr_events) {
		w->first_ns = event->time_ns;
		w->begun_ns = w->now_ns;
		mlk_encoder_begin(&w->events, w->first_ns);
	}
	err = mlk_encoder_add(&w->events, event);
	if (err) {
		/* What was half encoded must not be written: -ENOMEM is final, -EINVAL left
		 * nothing. */
		if (err != -EINVAL)
			w->err = err;
		return err;
	}
	w->nr_events++;
	w->last_ns = event->time_ns;
	return mlk_encoder_full(&w->events) ? flush_events(w) : 0;
}

int mlk_writer_maps(struct mlk_writer *w, const struct mlk_maps *maps)
{
	struct mlk_enc e = {0};
	uint64_t before = 0;

	mlk_enc_uvar(&e, maps->tgid);
	mlk_enc_u64(&e, maps->time_ns);
	mlk_enc_uvar(&e, maps->nr);
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->mappings[i];

		if (m->start < before || m->end < m->start || mlk_str_too_long(m->path)) {
			mlk_enc_release(&e);
			return -EINVAL;
		}
		mlk_enc_uvar(&e, m->start - before);
		mlk_enc_uvar(&e, m->end - m->start);
		mlk_enc_uvar(&e, m->offset);
		mlk_enc_u8(&e, (uint8_t)m->perms);
		mlk_enc_uvar(&e, m->dev_major);
		mlk_enc_uvar(&e, m->dev_minor);
		mlk_enc_uvar(&e, m->inode);
		mlk_enc_id(&e, &m->id);
		mlk_enc_str(&e, m->path);
		before = m->end;
	}
	return mlk_writer_put_single(w, MLK_CHUNK_MAPS, maps->time_ns, &e);
}

int mlk_writer_threads(struct mlk_writer *w, const struct mlk_thread *threads, size_t nr)
{
	struct mlk_enc e = {0};

	mlk_enc_uvar(&e, nr);
	for (size_t i = 0; i < nr; i++) {
		mlk_enc_uvar(&e, threads[i].tgid);
		mlk_enc_uvar(&e, threads[i].tid);
		mlk_enc_str(&e, threads[i].name);
	}
	return mlk_writer_put_single(w, MLK_CHUNK_THREADS, 0, &e);
}

int mlk_writer_origins(struct mlk_writer *w, const struct mlk_origin *origins, size_t nr)
{
	struct mlk_enc e = {0};

	mlk_enc_uvar(&e, nr);
	for (size_t i = 0; i < nr; i++) {
		const struct mlk_origin *o = &origins[i];

		mlk_enc_uvar(&e, o->number);
		mlk_enc_uvar(&e, o->tgid);
		mlk_enc_str(&e, o->process);
		mlk_enc_str(&e, o->cgroup);
		mlk_enc_str(&e, o->cache);
		mlk_enc_str(&e, o->flags);
		mlk_enc_uvar(&e, o->order);
	}
	return mlk_writer_put_single(w, MLK_CHUNK_ORIGINS, 0, &e);
}

int mlk_writer_memory(struct mlk_writer *w, const struct mlk_memory *samples, size_t nr)
{
	struct mlk_chunk h = {.type = MLK_CHUNK_MEMORY, .nr_records = 1};
	struct mlk_memory_state before = {0};
	struct mlk_enc e = {0};

	if (!nr)
		return 0;
	h.first_ns = samples[0].time_ns;
	h.last_ns = samples[nr - 1].time_ns;
	before.time_ns = h.first_ns;
	mlk_enc_uvar(&e, nr);
	for (size_t i = 0; i < nr; i++)
		mlk_memory_encode(&e, &before, &samples[i]);
	return mlk_writer_put(w, &h, &e);
}

int mlk_writer_accounts(struct mlk_writer *w, const struct mlk_account *accounts, size_t nr)
{
	int err = 0;

	for (size_t from = 0; from < nr && !err; from += MOST_ACCOUNTS) {
		size_t part = nr - from < MOST_ACCOUNTS ? nr - from : MOST_ACCOUNTS;
		struct mlk_enc e = {0};

		mlk_enc_uvar(&e, part);
		for (size_t i = 0; i < part; i++)
			mlk_account_encode(&e, &accounts[from + i]);
		err = mlk_writer_put_single(w, MLK_CHUNK_ACCOUNTS, accounts[0].time_ns, &e);
	}
	return err;
}

int mlk_writer_marks(struct mlk_writer *w, const struct mlk_mark *marks, size_t nr)
{
	struct mlk_chunk h = {.type = MLK_CHUNK_MARKS, .nr_records = 1};
	struct mlk_enc e = {0};
	uint64_t before_ns;
	int err = 0;

	if (!nr)
		return 0;
	h.first_ns = before_ns = marks[0].time_ns;
	h.last_ns = marks[nr - 1].time_ns;
	mlk_enc_uvar(&e, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = mlk_mark_encode(&e, &before_ns, &marks[i]);
	if (!err)
		return mlk_writer_put(w, &h, &e);
	mlk_enc_release(&e);
	return err;
}

int mlk_writer_module(struct mlk_writer *w, const struct mlk_id *id, const char *path,
		      const uint8_t *image, uint64_t image_len)
{
	const struct mlk_module module = {
		.id = *id, .path = path, .image_len = image_len, .piece = image};
	uint64_t done = 0;

	do {
		struct mlk_enc e = {0};
		int err = mlk_module_piece(&e, &module, &done);

		if (!err)
			err = mlk_writer_put_single(w, MLK_CHUNK_MODULE, 0, &e);
		if (err)
			return err;
	} while (done < image_len);
	return 0;
}

void mlk_writer_set_code(struct mlk_writer *w, const struct mlk_mapping *mappings, size_t nr)
{
	mlk_filter_set_code(&w->events.filter, mappings, nr);
	/* Words that were taken for data before are examined again. */
	mlk_encoder_forget(&w->events);
}

void mlk_writer_set_losses(struct mlk_writer *w, const struct mlk_losses *losses)
{
	w->losses = *losses;
}

/* Write the chunks beside the events. */
static int flush_both_beside(struct mlk_writer *w)
{
	int err = flush_beside(w, &w->stacks);

	return err ? err : flush_beside(w, &w->overruns);
}

int mlk_writer_flush_others(struct mlk_writer *w)
{
	int err = flush_both_beside(w);

	if (!err)
		err = flush_losses(w);
	return err ? err : mlk_chunk_out_error(w->out, false);
}

int mlk_writer_flush_old(struct mlk_writer *w, uint64_t now_ns, uint64_t age_ns)
{
	w->now_ns = now_ns;
	return w->nr_events && now_ns - w->begun_ns >= age_ns ? flush_events(w) : 0;
}

int mlk_writer_flush(struct mlk_writer *w)
{
	int err = flush_both_beside(w);

	if (!err)
		err = flush_events(w);
	return err ? err : flush_losses(w);
}

int mlk_writer_finish(struct mlk_writer *w, enum mlk_end reason, uint64_t time_ns)
{
	struct mlk_chunk h = {.type = MLK_CHUNK_END,
			      .first_ns = time_ns,
			      .last_ns = time_ns,
			      .nr_records = 1,
			      .salt = w->salt};
	struct mlk_enc e = {0};
	uint64_t index = 0;
	int err = mlk_writer_flush(w), last;

	/* Without room for it the trace is whole anyway: readers make their own. */
	if (!err)
		(void)mlk_chunk_out_index(w->out, w->salt, &index);
	mlk_end_encode(&e, &(struct mlk_ending){reason, time_ns}, index);
	count_losses(&w->losses, &h);
	if (!err || reason == MLK_END_ERROR) {
		last = mlk_chunk_out_last(w->out, &h, &e);
		err = err ? err : last;
	}
	mlk_enc_release(&e);
	return err;
}

void mlk_writer_in_thread(struct mlk_writer *w, void (*fn)(void *arg), void *arg)
{
	mlk_chunk_out_call(w->out, fn, arg);
}

bool mlk_writer_is_behind(const struct mlk_writer *w)
{
	return mlk_chunk_out_is_behind(w->out);
}

void mlk_writer_patience(struct mlk_writer *w, bool (*gives_up)(void *arg), void *arg)
{
	mlk_chunk_out_patience(w->out, gives_up, arg);
}

uint64_t mlk_writer_bytes(const struct mlk_writer *w)
{
	return mlk_chunk_out_bytes(w->out);
}

void mlk_writer_free(struct mlk_writer *w)
{
	if (!w)
		return;
	mlk_chunk_out_free(w->out);
	mlk_encoder_release(&w->events);
	mlk_beside_release(&w->stacks);
	mlk_beside_release(&w->overruns);
	mlk_enc_release(&w->codes);
	free(w);
}
