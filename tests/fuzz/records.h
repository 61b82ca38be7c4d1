/* records.h - what must be true of every record that a reader gives out, whatever the file was */
#ifndef TESTS_FUZZ_RECORDS_H
#define TESTS_FUZZ_RECORDS_H

#include "format/reader.h"
#include "tests/fuzz/fuzz.h"

/* What was read, in numbers. */
struct fuzz_seen {
	uint64_t records[4]; /* events, maps, modules, threads */
	uint64_t sum;	     /* of some bytes of everything, so that ASan sees them */
};

static inline void fuzz_see_text(struct fuzz_seen *seen, const char *s)
{
	size_t len = strlen(s);

	FUZZ_CHECK(len <= MLK_MAX_STRING);
	seen->sum += len;
}

static inline void fuzz_see_bytes(struct fuzz_seen *seen, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i += 61)
		seen->sum += bytes[i];
	seen->sum += len ? bytes[len - 1] : 0;
}

static inline void fuzz_see_event(struct fuzz_seen *seen, const struct mlk_event *ev)
{
	seen->records[0]++;
	FUZZ_CHECK(ev->kind >= MLK_ALLOC && ev->kind < MLK_KIND_NR);
	seen->sum += ev->addr ^ ev->time_ns;
	if (ev->kind != MLK_ALLOC) {
		FUZZ_CHECK(!ev->nr_regs && !ev->stack && !ev->stack_len);
		FUZZ_CHECK(!(ev->flags & ~(uint32_t)MLK_EVENT_NESTED));
		return;
	}
	FUZZ_CHECK(ev->nr_regs > MLK_SP_REG && ev->nr_regs <= MLK_MAX_REGS);
	FUZZ_CHECK(ev->stack_len <= MLK_MAX_STACK && (ev->stack || !ev->stack_len));
	FUZZ_CHECK(ev->regs[MLK_SP_REG] + ev->stack_len >= ev->regs[MLK_SP_REG]);
	fuzz_see_bytes(seen, ev->stack, ev->stack_len);
}

static inline void fuzz_see_overrun(struct fuzz_seen *seen, const struct mlk_overrun *o)
{
	uint64_t events = seen->records[0];

	FUZZ_CHECK(o->at.kind == MLK_ALLOC);
	FUZZ_CHECK(o->len <= MLK_MAX_OVERRUN && o->changed <= o->len);
	fuzz_see_event(seen, &o->at);
	if (o->bytes)
		fuzz_see_bytes(seen, o->bytes, o->len);
	seen->records[0] = events; /* no event */
}

static inline void fuzz_see_maps(struct fuzz_seen *seen, const struct mlk_maps *maps)
{
	uint64_t before = 0;

	seen->records[1]++;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->mappings[i];

		FUZZ_CHECK(m->start >= before && m->end >= m->start);
		FUZZ_CHECK(m->id.len <= MLK_MAX_ID);
		fuzz_see_text(seen, m->path);
		before = m->end;
	}
}

static inline void fuzz_see_module(struct fuzz_seen *seen, const struct mlk_module *m)
{
	seen->records[2]++;
	FUZZ_CHECK(m->id.len && m->id.len <= MLK_MAX_ID);
	FUZZ_CHECK(m->image_len <= MLK_MAX_IMAGE && m->offset <= m->image_len);
	FUZZ_CHECK(m->piece_len <= m->image_len - m->offset);
	fuzz_see_text(seen, m->path);
	fuzz_see_bytes(seen, m->piece, m->piece_len);
}

static inline void fuzz_see_unwound(struct fuzz_seen *seen, const struct mlk_unwound *u)
{
	for (size_t i = 0; i < u->nr_modules; i++) {
		FUZZ_CHECK(u->modules[i].id.len <= MLK_MAX_ID);
		fuzz_see_text(seen, u->modules[i].path);
	}
	for (size_t i = 0; i < u->nr_stacks; i++) {
		FUZZ_CHECK(u->stacks[i].caller <= i && u->stacks[i].module <= u->nr_modules);
		seen->sum += u->stacks[i].pc ^ u->stacks[i].flags;
	}
	for (size_t i = 0; i < u->nr_allocs; i++)
		FUZZ_CHECK(u->allocs[i] && u->allocs[i] <= u->nr_stacks);
}

static inline void fuzz_see_record(struct fuzz_seen *seen, const struct mlk_record *rec)
{
	switch (rec->type) {
	case MLK_RECORD_EVENT:
		fuzz_see_event(seen, &rec->event);
		break;
	case MLK_RECORD_MAPS:
		fuzz_see_maps(seen, &rec->maps);
		break;
	case MLK_RECORD_MODULE:
		fuzz_see_module(seen, &rec->module);
		break;
	case MLK_RECORD_THREAD:
		seen->records[3]++;
		fuzz_see_text(seen, rec->thread.name);
		break;
	case MLK_RECORD_OVERRUN:
		fuzz_see_overrun(seen, &rec->overrun);
		break;
	case MLK_RECORD_UNWOUND:
		fuzz_see_unwound(seen, &rec->unwound);
		break;
	case MLK_RECORD_HEAD:
		seen->sum += rec->event.addr ^ rec->event.time_ns;
		FUZZ_CHECK(rec->event.kind >= MLK_ALLOC && rec->event.kind < MLK_KIND_NR);
		break;
	case MLK_RECORD_SKIPPED:
		FUZZ_CHECK(rec->skipped.len);
		break;
	default:
		FUZZ_CHECK(rec->type && !(rec->type & (rec->type - 1)));
		FUZZ_CHECK(rec->type & MLK_RECORD_DUMP);
		break;
	}
}

static inline void fuzz_see_meta(struct fuzz_seen *seen, const struct mlk_meta *m)
{
	fuzz_see_text(seen, m->command);
	fuzz_see_text(seen, m->exe);
	fuzz_see_text(seen, m->comm);
	fuzz_see_text(seen, m->hostname);
	fuzz_see_text(seen, m->kernel);
	fuzz_see_text(seen, m->machine);
	fuzz_see_text(seen, m->recorder);
	fuzz_see_text(seen, m->backend);
}

/* Read all @types of @r to the end. */
static inline struct fuzz_seen fuzz_read_all(struct mlk_reader *r, unsigned int types)
{
	struct fuzz_seen seen = {0};
	struct mlk_record rec;
	int got;

	mlk_reader_rewind(r, types);
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		FUZZ_CHECK(rec.type & types);
		fuzz_see_record(&seen, &rec);
	}
	FUZZ_CHECK(got == 0);
	fuzz_see_meta(&seen, mlk_reader_meta(r));
	return seen;
}

#endif
