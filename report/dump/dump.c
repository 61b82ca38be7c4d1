/* dump.c - see dump.h */
#include "report/dump/dump.h"

#include <inttypes.h>
#include <zlib.h>

#include "report/base/event_names.h"
#include "report/base/text.h"
#include "report/dump/dump_beside.h"
#include "report/dump/dump_code.h"
#include "report/dump/dump_reach.h"

#define STACK_LINE 32 /* bytes of a stack in a line */

/* @name, or the number for which there is none. */
static void print_name(FILE *out, const char *name, unsigned int number)
{
	if (name)
		fputs(name, out);
	else
		fprintf(out, "unknown-%u", number);
}

static void print_hex(FILE *out, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		putc(digits[bytes[i] >> 4], out);
		putc(digits[bytes[i] & 15], out);
	}
}

/* @label and @text, to the end of the line. */
static void print_labelled(FILE *out, const char *label, const char *text)
{
	fputs(label, out);
	text_print(out, text);
	putc('\n', out);
}

static void dump_header(FILE *out, const struct mlk_header *h)
{
	fprintf(out,
		"header: version %u.%u, length %" PRIu32 ", required 0x%" PRIx64
		", optional 0x%" PRIx64 ", salt %08" PRIx32 ", stacks ",
		h->major, h->minor, h->len, h->required, h->optional, h->salt);
	print_name(out, stack_mode_name(h->stack_mode), h->stack_mode);
	fprintf(out, ", realtime %" PRIu64 ", monotonic %" PRIu64 "\n", h->realtime_ns,
		h->start_ns);
}

static const char *chunk_name(enum mlk_record_type records)
{
	switch ((unsigned int)records) {
	case MLK_RECORD_META:
		return "META";
	case MLK_RECORD_MAPS:
		return "MAPS";
	case MLK_RECORD_MODULE:
		return "MODULE";
	case MLK_RECORD_EVENT:
		return "EVENTS";
	case MLK_RECORD_THREAD:
		return "THREADS";
	case MLK_RECORD_ORIGIN:
		return "ORIGINS";
	case MLK_RECORD_MEMORY:
		return "MEMORY";
	case MLK_RECORD_ACCOUNT:
		return "ACCOUNTS";
	case MLK_RECORD_MARK:
		return "MARKS";
	case MLK_RECORD_REGIONS:
		return "REGIONS";
	case MLK_RECORD_POINTERS:
		return "POINTERS";
	case MLK_RECORD_PASS:
		return "PASS";
	case MLK_RECORD_HEAP:
		return "HEAP";
	case MLK_RECORD_SMAPS:
		return "SMAPS";
	case MLK_RECORD_CODE_NAMES:
		return "CODENAMES";
	case MLK_RECORD_CODE:
		return "CODE";
	case MLK_RECORD_INTERPRETER:
		return "INTERPRETERS";
	case MLK_RECORD_INDEX:
		return "INDEX";
	case MLK_RECORD_LOSSES:
		return "LOSSES";
	case MLK_RECORD_STACK:
		return "STACKS";
	case MLK_RECORD_OVERRUN:
		return "OVERRUNS";
	case MLK_RECORD_UNWOUND:
		return "UNWOUND";
	default:
		return "END";
	}
}

static void dump_chunk(FILE *out, const struct mlk_chunk *c)
{
	fprintf(out, "chunk 0x%" PRIx64 ": ", c->offset);
	if (c->records)
		fputs(chunk_name(c->records), out);
	else
		fprintf(out, "unknown-%u", c->type);
	fprintf(out,
		", seq %" PRIu64 ", flags 0x%x, stored %" PRIu32 ", raw %" PRIu32 ", first %" PRIu64
		", last %" PRIu64 ", lost %" PRIu64 " %" PRIu64 " %" PRIu64 ", records %" PRIu32
		"\n",
		c->seq, c->flags, c->stored_len, c->raw_len, c->first_ns, c->last_ns,
		c->lost_allocs, c->lost_frees, c->lost_others, c->nr_records);
}

static void dump_meta(FILE *out, const struct mlk_meta *m)
{
	print_labelled(out, "  command ", m->command);
	print_labelled(out, "  exe ", m->exe);
	print_labelled(out, "  comm ", m->comm);
	print_labelled(out, "  hostname ", m->hostname);
	print_labelled(out, "  kernel ", m->kernel);
	print_labelled(out, "  machine ", m->machine);
	print_labelled(out, "  recorder ", m->recorder);
	print_labelled(out, "  backend ", m->backend);
	fprintf(out, "  tgid %" PRIu64 "\n  stack_limit %" PRIu64 "\n  whole_life %" PRIu64 "\n",
		m->tgid, m->stack_limit, m->whole_life);
	fprintf(out,
		"  sample_every %" PRIu64 "\n  sample_bytes %" PRIu64 "\n  min_size %" PRIu64
		"\n  max_size %" PRIu64 "\n  trigger_bytes %" PRIu64 "\n  ring_size %" PRIu64
		"\n  guarded %" PRIu64 "\n  of_kernel %" PRIu64 "\n",
		m->sample_every, m->sample_bytes, m->min_size, m->max_size, m->trigger_bytes,
		m->ring_size, m->guarded, m->of_kernel);
	if (m->dropped)
		fprintf(out, "  dropped %" PRIu64 "\n", m->dropped);
	if (m->trigger_process)
		fprintf(out, "  trigger_process %" PRIu64 "\n", m->trigger_process);
	if (m->trigger_site)
		fprintf(out, "  trigger_site %" PRIu64 "\n", m->trigger_site);
}

static void dump_mapping(FILE *out, const struct mlk_mapping *m)
{
	fprintf(out, "    %" PRIx64 "-%" PRIx64 " %c%c%c%c %" PRIx64 " %x:%x %" PRIu64 " id ",
		m->start, m->end, m->perms & MLK_PERM_R ? 'r' : '-',
		m->perms & MLK_PERM_W ? 'w' : '-', m->perms & MLK_PERM_X ? 'x' : '-',
		m->perms & MLK_PERM_SHARED ? 's' : 'p', m->offset, m->dev_major, m->dev_minor,
		m->inode);
	if (m->id.len)
		print_hex(out, m->id.bytes, m->id.len);
	else
		putc('-', out);
	print_labelled(out, " path ", m->path);
}

static void dump_maps(FILE *out, const struct mlk_maps *maps)
{
	fprintf(out, "  MAPS tgid %" PRIu32 ", time %" PRIu64 ", mappings %zu\n", maps->tgid,
		maps->time_ns, maps->nr);
	for (size_t i = 0; i < maps->nr; i++)
		dump_mapping(out, &maps->mappings[i]);
}

static void dump_module(FILE *out, const struct mlk_module *m)
{
	fputs("  MODULE id ", out);
	print_hex(out, m->id.bytes, m->id.len);
	fprintf(out,
		", image %" PRIu64 ", offset %" PRIu64 ", length %" PRIu32 ", crc %08lx, path ",
		m->image_len, m->offset, m->piece_len, crc32_z(0, m->piece, m->piece_len));
	print_labelled(out, "", m->path);
}

static void dump_origin(FILE *out, const struct mlk_origin *o)
{
	fprintf(out, "  ORIGIN %" PRIu32 ", tgid %" PRIu32, o->number, o->tgid);
	print_labelled(out, ", process ", o->process);
	print_labelled(out, "    cgroup ", o->cgroup);
	print_labelled(out, "    cache ", o->cache);
	print_labelled(out, "    flags ", o->flags);
	fprintf(out, "    order %" PRIu32 "\n", o->order);
}

/* Registers and stack, and the end of the line. */
static void dump_stack(FILE *out, const struct mlk_event *e, bool stacks)
{
	fputs(", regs", out);
	for (unsigned int i = 0; i < e->nr_regs; i++)
		fprintf(out, " %" PRIx64, e->regs[i]);
	fprintf(out, ", stack %" PRIu32 ", crc %08lx", e->stack_len,
		e->stack_len ? crc32_z(0, e->stack, e->stack_len) : 0);
	dump_frames(out, e);
	putc('\n', out);
	for (uint32_t at = 0; stacks && at < e->stack_len; at += STACK_LINE) {
		uint32_t left = e->stack_len - at;

		fprintf(out, "    %016" PRIx64 " ", e->regs[MLK_SP_REG] + at);
		print_hex(out, e->stack + at, left < STACK_LINE ? left : STACK_LINE);
		putc('\n', out);
	}
}

/* What only an ALLOC has, and the end of its line. */
static void dump_allocation(FILE *out, const struct mlk_event *e, bool stacks)
{
	fprintf(out, ", size %" PRIu64 ", func ", e->size);
	print_name(out, event_func_name(e->func), e->func);
	fprintf(out, ", id %" PRIu64, e->alloc_id);
	dump_stack(out, e, stacks);
}

/* What a thread was doing; its registers that are not known are 0. */
static void dump_thread_stack(FILE *out, const struct mlk_event *e, bool stacks)
{
	fprintf(out,
		"  STACK flags 0x%" PRIx32 ", tgid %" PRIu32 ", tid %" PRIu32 ", time %" PRIu64
		", known 0x%" PRIx64,
		e->flags, e->tgid, e->tid, e->time_ns, e->size);
	dump_stack(out, e, stacks);
}

/* What was written beyond a block's bounds, and the state of the thread that found it. */
static void dump_overrun(FILE *out, const struct mlk_overrun *o, bool stacks)
{
	static const char *const found[] = {
		[MLK_FOUND_FREE] = "free",
		[MLK_FOUND_REALLOC] = "realloc",
		[MLK_FOUND_EXIT] = "exit",
		[MLK_FOUND_EXEC] = "exec",
	};

	fputs("  OVERRUN found ", out);
	print_name(out, o->found < sizeof(found) / sizeof(*found) ? found[o->found] : NULL,
		   o->found);
	fprintf(out, ", offset %" PRId64 ", length %" PRIu32 ", changed %" PRIu32 ", bytes ",
		o->offset, o->len, o->changed);
	if (o->bytes && o->len)
		print_hex(out, o->bytes, o->len);
	else
		putc('-', out);
	fprintf(out,
		", flags 0x%" PRIx32 ", tgid %" PRIu32 ", tid %" PRIu32 ", time %" PRIu64
		", addr 0x%" PRIx64 ", size %" PRIu64,
		o->at.flags, o->at.tgid, o->at.tid, o->at.time_ns, o->at.addr, o->at.size);
	dump_stack(out, &o->at, stacks);
}

static void dump_pages(FILE *out, const struct mlk_event *e)
{
	fprintf(out, ", size %" PRIu64 ", pages ", e->size);
	print_name(out, event_pages_name(e->func), e->func);
	putc('\n', out);
}

static void dump_event(FILE *out, const struct mlk_event *e, bool stacks)
{
	fputs("  ", out);
	print_name(out, event_kind_name(e->kind), e->kind);
	if (e->kind != MLK_ALLOC && e->flags & MLK_EVENT_NESTED)
		fputs(" flags nested", out);
	else
		fprintf(out, " flags 0x%" PRIx32, e->flags);
	fprintf(out, ", tgid %" PRIu32 ", tid %" PRIu32 ", time %" PRIu64 ", addr 0x%" PRIx64,
		e->tgid, e->tid, e->time_ns, e->addr);
	if (e->kind == MLK_ALLOC)
		dump_allocation(out, e, stacks);
	else if (e->kind == MLK_UNMAP)
		fprintf(out, ", size %" PRIu64 "\n", e->size);
	else if (e->kind == MLK_PAGES)
		dump_pages(out, e);
	else
		putc('\n', out);
}

static void dump_thread(FILE *out, const struct mlk_thread *t)
{
	fprintf(out, "  THREAD tgid %" PRIu32 ", tid %" PRIu32, t->tgid, t->tid);
	print_labelled(out, ", name ", t->name);
}

static void dump_entry(FILE *out, const struct mlk_entry *e)
{
	fprintf(out,
		"  ENTRY 0x%" PRIx64 ", type %u, seq %" PRIu64 ", first %" PRIu64 ", last %" PRIu64
		", records %" PRIu32 "\n",
		e->offset, e->type, e->seq, e->first_ns, e->last_ns, e->nr_records);
}

static void dump_unwound(FILE *out, const struct mlk_unwound *u)
{
	fprintf(out,
		"  UNWOUND crc %08" PRIx32 ", first %" PRIu64
		", modules %zu, stacks %zu, allocs %zu\n",
		u->events_crc, u->first_ns, u->nr_modules, u->nr_stacks, u->nr_allocs);
	for (size_t i = 0; i < u->nr_modules; i++) {
		fputs("    module ", out);
		if (u->modules[i].id.len)
			print_hex(out, u->modules[i].id.bytes, u->modules[i].id.len);
		else
			putc('-', out);
		fprintf(out, " bias 0x%" PRIx64, u->modules[i].bias);
		print_labelled(out, " path ", u->modules[i].path);
	}
	for (size_t i = 0; i < u->nr_stacks; i++) {
		const struct mlk_unwound_stack *stack = &u->stacks[i];

		if (stack->caller)
			fprintf(out,
				"    stack %zu caller %" PRIu32 " module %" PRIu32 " pc 0x%" PRIx64
				" flags 0x%" PRIx32 "\n",
				i + 1, stack->caller, stack->module, stack->pc, stack->flags);
		else
			fprintf(out, "    stack %zu status %" PRIu32 "\n", i + 1, stack->flags);
	}
	fputs("    allocs", out);
	for (size_t i = 0; i < u->nr_allocs; i++)
		fprintf(out, " %" PRIu32, u->allocs[i]);
	putc('\n', out);
}

/* The head of an event that an UNWOUND chunk has, too. */
static void dump_head(FILE *out, const struct mlk_event *e)
{
	fputs("    head ", out);
	print_name(out, event_kind_name(e->kind), e->kind);
	fprintf(out,
		" flags 0x%" PRIx32 ", tgid %" PRIu32 ", tid %" PRIu32 ", time %" PRIu64
		", addr 0x%" PRIx64 ", size %" PRIu64 ", func %u, id %" PRIu64 "\n",
		e->flags, e->tgid, e->tid, e->time_ns, e->addr, e->size, e->func, e->alloc_id);
}

static void dump_framing(FILE *out, const struct mlk_reader *trace, const struct mlk_record *rec)
{
	switch ((unsigned int)rec->type) {
	case MLK_RECORD_META:
		dump_meta(out, mlk_reader_meta(trace));
		break;
	case MLK_RECORD_LOSSES:
		dump_losses(out, &rec->losses);
		break;
	case MLK_RECORD_END:
		fprintf(out, "  END reason %u, time %" PRIu64 "\n", rec->end.reason,
			rec->end.time_ns);
		break;
	case MLK_RECORD_INDEX:
		dump_entry(out, &rec->entry);
		break;
	case MLK_RECORD_CHUNK:
		dump_chunk(out, &rec->chunk);
		break;
	case MLK_RECORD_DAMAGED:
		fputs("  damaged, stepped over\n", out);
		break;
	case MLK_RECORD_SKIPPED:
		fprintf(out,
			"skipped 0x%" PRIx64 ": %" PRIu64 " bytes that belong to no whole chunk\n",
			rec->skipped.offset, rec->skipped.len);
	}
}

static void dump_record(FILE *out, const struct mlk_reader *trace, const struct mlk_record *rec,
			bool stacks)
{
	switch ((unsigned int)rec->type) {
	case MLK_RECORD_STACK:
		dump_thread_stack(out, &rec->event, stacks);
		break;
	case MLK_RECORD_OVERRUN:
		dump_overrun(out, &rec->overrun, stacks);
		break;
	case MLK_RECORD_UNWOUND:
		dump_unwound(out, &rec->unwound);
		break;
	case MLK_RECORD_HEAD:
		dump_head(out, &rec->event);
		break;
	case MLK_RECORD_EVENT:
		dump_event(out, &rec->event, stacks);
		break;
	case MLK_RECORD_MAPS:
		dump_maps(out, &rec->maps);
		break;
	case MLK_RECORD_MODULE:
		dump_module(out, &rec->module);
		break;
	case MLK_RECORD_THREAD:
		dump_thread(out, &rec->thread);
		break;
	case MLK_RECORD_ORIGIN:
		dump_origin(out, &rec->origin);
		break;
	case MLK_RECORD_MEMORY:
		dump_memory(out, &rec->memory);
		break;
	case MLK_RECORD_ACCOUNT:
		dump_account(out, &rec->account);
		break;
	case MLK_RECORD_MARK:
		dump_mark(out, &rec->mark);
		break;
	case MLK_RECORD_REGIONS:
		dump_regions(out, &rec->regions);
		break;
	case MLK_RECORD_POINTERS:
	case MLK_RECORD_PASS:
	case MLK_RECORD_HEAP:
	case MLK_RECORD_SMAPS:
	case MLK_RECORD_CODE_NAMES:
		dump_snapshot(out, rec);
		break;
	case MLK_RECORD_CODE:
	case MLK_RECORD_INTERPRETER:
		dump_code(out, rec);
		break;
	default:
		dump_framing(out, trace, rec);
	}
}

int dump_trace(FILE *out, struct mlk_reader *trace, bool stacks)
{
	const struct mlk_condition *c = mlk_reader_condition(trace);
	struct mlk_header header = mlk_reader_header(trace);
	struct mlk_record record;
	int more;

	dump_header(out, &header);
	mlk_reader_rewind(trace, MLK_RECORD_DUMP);
	/* the process that closed the pipe has read enough */
	while ((more = mlk_reader_next(trace, &record)) > 0 && !ferror(out))
		dump_record(out, trace, &record, stacks);
	if (!more)
		fprintf(out,
			"end: chunks %" PRIu64 ", lost %" PRIu64 ", unknown %" PRIu64
			", bytes skipped %" PRIu64 ", %s\n",
			c->chunks, c->chunks_lost, c->chunks_unknown, c->bytes_skipped,
			c->ended ? "ended" : "not ended");
	return more < 0 ? more : 0;
}
