/* print_address.c - see print_address.h */
#include "report/output/print_address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/event_names.h"
#include "report/base/text.h"
#include "report/context/print_block.h"

#define SCHEMA_VERSION 1
#define STACK_INDENT   "      "

/* What one process knows of the address. */
struct answer {
	struct live_process process;
	struct live_around around; /* whose holder is none that is inherited */
	struct live_near near;	   /* of that */
	struct holder last;	   /* that holds it, or held it */
	const struct overrun *end; /* whose finder ended it, or NULL */
};

struct address {
	struct address_source source;
	uint64_t addr;
	struct stack_names *named;
	struct answer *answers;
	size_t nr, nr_held; /* processes in which a block holds it, or held it */
};

static bool holds(const struct answer *a)
{
	return a->around.held || (a->last.any && a->last.end == HOLDER_LIVES);
}

static bool knows_any(const struct answer *a)
{
	return a->last.any || a->around.held || a->around.has_before || a->around.has_after;
}

/* The overrun that was found when @last was freed: of that moment there is a stack. */
static const struct overrun *find_end(const struct replay *leaks, const struct holder *last)
{
	const struct overruns *overruns = leaks->overruns;

	if (!last->any || last->end == HOLDER_LIVES)
		return NULL;
	for (size_t i = overruns->nr; i-- > 0;) {
		const struct overrun *o = overruns->all[i];

		if (o->addr == last->block.addr && o->tid == last->end_tid &&
		    o->time_ns >= last->block.time_ns && o->time_ns <= last->end_ns &&
		    o->found_stack != OVERRUNS_NO_STACK)
			return o;
	}
	return NULL;
}

static int look(struct address *address, size_t process)
{
	const struct replay *leaks = address->source.leaks;
	struct answer *a = &address->answers[address->nr];
	int err;

	a->process = live_process(leaks->live, process);
	if (address->source.pid && a->process.tgid != address->source.pid)
		return 0;
	address->nr++;
	live_look_around(leaks->live, process, address->addr, &a->around);
	err = live_look_near(leaks->live, process, &a->around, address->source.around, &a->near);
	if (!err)
		err = block_want_near(address->named, leaks, &a->near);
	if (err)
		return err;
	a->last = address_history_get(address->source.holders, process);
	a->end = find_end(leaks, &a->last);
	address->nr_held += a->last.any || a->around.held;
	err = block_want_around(address->named, leaks, &a->around);
	if (!err && a->last.any)
		err = stack_names_want(address->named, block_stack(leaks, &a->last.block));
	return err || !a->end ? err : stack_names_want(address->named, a->end->found_stack);
}

int address_new(struct address **out, const struct address_source *source,
		const struct symbols_source *names, const struct view_opts *opts)
{
	struct address *address = calloc(1, sizeof(*address));
	size_t nr = live_nr_processes(source->leaks->live);
	int err;

	*out = NULL;
	if (!address)
		return -ENOMEM;
	address->source = *source;
	address->addr = source->holders->addr;
	address->answers = calloc(nr + 1, sizeof(*address->answers));
	err = address->answers ? stack_names_new(&address->named, names, opts) : -ENOMEM;
	for (size_t i = 0; !err && i < nr; i++)
		err = look(address, i);
	if (!err)
		err = stack_names_resolve(address->named);
	if (err)
		address_free(address);
	else
		*out = address;
	return err;
}

static struct block_printer printer_of(const struct address *address, FILE *out)
{
	return (struct block_printer){
		.out = out,
		.leaks = address->source.leaks,
		.named = address->named,
		.start_ns = address->source.meta->start_ns,
		.now_ns = address->source.leaks->chosen.end_ns,
	};
}

/* "12 bytes into a block of 47 bytes" */
static void print_place(FILE *out, uint64_t addr, const struct live_block *block)
{
	char at[TEXT_NUMBER_MAX], size[TEXT_NUMBER_MAX];

	fprintf(out, "%s %s into a block of %s %s", text_number(at, addr - block->addr),
		addr - block->addr == 1 ? "byte" : "bytes", text_number(size, block->size),
		block->size == 1 ? "byte" : "bytes");
}

/* What was written beyond the bounds of @block. */
static void print_overruns_of(const struct block_printer *p, const struct live_block *block)
{
	const struct overruns *overruns = p->leaks->overruns;

	for (size_t i = 0; i < overruns->nr; i++) {
		const struct overrun *o = overruns->all[i];

		if (!o->known || o->block.addr != block->addr || o->block.tgid != block->tgid ||
		    o->block.time_ns != block->time_ns)
			continue;
		fprintf(p->out,
			"  OVERRUN: %" PRIu32 " %s written %s it, from offset %" PRId64
			", found at ",
			o->len, o->len == 1 ? "byte was" : "bytes were",
			o->offset < 0 ? "before" : "behind", o->offset);
		print_time(p, o->time_ns);
		fputc('\n', p->out);
	}
}

/* Do frees have the time of what came before them? */
static bool is_rough(const struct mlk_meta *meta)
{
	return !strncmp(meta->backend, "bpf", 3);
}

static void print_end(const struct block_printer *p, const struct answer *a,
		      const struct mlk_meta *meta)
{
	static const char *const ends[] = {
		[HOLDER_FREED] = "freed by ",
		[HOLDER_REALLOCATED] = "reallocated, and so freed, by ",
		[HOLDER_UNMAPPED] = "unmapped by ",
		[HOLDER_GONE] = "gone when the process started another program, in ",
	};

	fprintf(p->out, "  %s", ends[a->last.end]);
	print_thread(p, a->process.tgid, a->last.end_tid);
	fputs(" at ", p->out);
	print_time(p, a->last.end_ns);
	fputs(is_rough(meta) ? " or later" : "", p->out);
	fputs(a->end ? ", by\n" : "\n", p->out);
	if (a->end)
		stack_names_print(p->named, p->out, a->end->found_stack, STACK_INDENT);
}

/* For a block that is gone: its age is the one it reached. */
static struct block_printer printer_of_last(const struct block_printer *p, const struct answer *a)
{
	struct block_printer last = *p;

	if (a->last.end != HOLDER_LIVES) {
		last.now_ns = a->last.end_ns;
		last.gone = true;
	}
	return last;
}

/* Behind the place in a block that lives: why it takes no memory, or is the parent's. */
static const char *holder_remark(const struct answer *a)
{
	if (!a->around.held)
		return ", inherited by fork";
	if (a->around.holder.use == LIVE_RESERVED)
		return ", which is reserved (PROT_NONE) and needs no memory";
	return a->around.holder.use == LIVE_GIVEN_BACK ? ", which madvise gave back" : "";
}

static void print_holder(const struct block_printer *p, const struct answer *a,
			 const struct address *address)
{
	struct block_printer last = printer_of_last(p, a);
	uint64_t addr = address->addr;

	fputs("  it is ", p->out);
	if (a->around.held || a->last.end == HOLDER_LIVES) {
		const struct live_block *block =
			a->around.held ? &a->around.holder : &a->last.block;

		print_place(p->out, addr, block);
		fprintf(p->out, "%s\n", holder_remark(a));
		print_block(p, "the block", block);
		print_overruns_of(p, block);
		return;
	}
	fputs("in no block; the last that held it is gone: it was ", p->out);
	print_place(p->out, addr, &a->last.block);
	fputc('\n', p->out);
	print_block(&last, "that block", &a->last.block);
	print_overruns_of(p, &a->last.block);
	print_end(p, a, address->source.meta);
}

/* What an address is that no block holds. */
static void print_mapping(const struct block_printer *p, const struct address *address,
			  const struct answer *a)
{
	const struct address_place *place =
		address_places_get(address->source.places, a->process.tgid);

	if (holds(a) || !place)
		return;
	fputs("  ", p->out);
	address_place_print(p->out, place);
	if (place->kind == PLACE_UNKNOWN) {
		fputs(", as of ", p->out);
		print_time(p, place->region.time_ns);
	}
	fputc('\n', p->out);
}

static void print_answer(const struct block_printer *p, const struct address *address,
			 const struct answer *a)
{
	const struct live *live = address->source.leaks->live;

	if (live_nr_processes(live) > 1) {
		fputs("\nprocess ", p->out);
		text_print(p->out, processes_name(p->leaks->processes, a->process.tgid));
		fprintf(p->out, " (%" PRIu32 ")\n", a->process.tgid);
	}
	print_mapping(p, address, a);
	if (!knows_any(a)) {
		fputs("  it has no block now, and none has held the address\n", p->out);
		return;
	}
	if (a->last.any || a->around.held)
		print_holder(p, a, address);
	else if (address->nr_held)
		fputs("  no block has held it\n", p->out);
	if (address->source.around)
		print_near(p, holds(a) ? "" : "near ", &a->near);
	else
		print_neighbours(p, holds(a) ? "" : "nearest ", &a->around);
}

/* What blocks there may have been that are not in the trace. */
static void print_unknown(FILE *out, const struct mlk_meta *meta)
{
	if (!meta->whole_life)
		fputs("blocks allocated before the recording are not known\n", out);
	if (meta->sample_every > 1 || meta->sample_bytes || meta->min_size || meta->max_size ||
	    meta->trigger_bytes || meta->trigger_process || meta->trigger_site)
		fputs("blocks that the recording's options left out are not known\n", out);
}

void print_address(FILE *out, const struct address *address)
{
	struct block_printer p = printer_of(address, out);

	fprintf(out, "0x%" PRIx64 " in '", address->addr);
	text_print(out, address->source.path);
	fputs("' at ", out);
	print_time(&p, p.now_ns);
	fputc('\n', out);
	if (!address->nr_held)
		fprintf(out, "no block of %s in the trace holds this address, or has held it\n",
			address->nr > 1 ? "any process" : "the process");
	for (size_t i = 0; i < address->nr; i++)
		print_answer(&p, address, &address->answers[i]);
	print_unknown(out, address->source.meta);
}

static void put_last(const struct block_printer *p, struct json *json, const struct answer *a)
{
	static const char *const ends[] = {
		[HOLDER_LIVES] = "inherited",	  [HOLDER_FREED] = "free",
		[HOLDER_REALLOCATED] = "realloc", [HOLDER_UNMAPPED] = "munmap",
		[HOLDER_GONE] = "exec",
	};
	struct block_printer last = printer_of_last(p, a);
	uint64_t ns = a->last.end_ns;

	json_open(json, "last", '{');
	block_json(&last, json, "block", &a->last.block);
	json_text(json, "function",
		  event_func_name(a->last.func) ? event_func_name(a->last.func) : "");
	json_text(json, "end", ends[a->last.end]);
	if (a->last.end != HOLDER_LIVES) {
		json_number(json, "end_ns", ns > p->start_ns ? ns - p->start_ns : 0);
		json_number(json, "end_thread", a->last.end_tid);
	}
	if (a->end) {
		json_open(json, "ended_by", '{');
		stack_names_json(p->named, json, a->end->found_stack);
		json_close(json, '}');
	}
	json_close(json, '}');
}

static void put_answer(const struct block_printer *p, struct json *json,
		       const struct address *address, const struct answer *a)
{
	const struct live *live = address->source.leaks->live;
	const struct address_place *place =
		address_places_get(address->source.places, a->process.tgid);

	json_open(json, NULL, '{');
	json_number(json, "pid", a->process.tgid);
	json_text(json, "comm",
		  live_nr_processes(live) == 1
			  ? p->leaks->comm
			  : processes_name(p->leaks->processes, a->process.tgid));
	json_bool(json, "held", holds(a));
	if (a->around.held) {
		json_number(json, "offset", address->addr - a->around.holder.addr);
		block_json(p, json, "block", &a->around.holder);
		if (a->around.holder.use != LIVE_IN_USE)
			json_text(json, "use",
				  a->around.holder.use == LIVE_RESERVED ? "reserved"
									: "given back");
	} else if (a->last.any) {
		json_number(json, "offset", address->addr - a->last.block.addr);
		put_last(p, json, a);
	}
	if (place && !holds(a))
		address_place_json(json, "mapping", place, p->start_ns);
	neighbours_json(p, json, &a->around);
	if (address->source.around)
		near_json(p, json, &a->near);
	json_close(json, '}');
}

void print_address_json(FILE *out, const struct address *address)
{
	struct block_printer p = printer_of(address, out);
	struct json json = {.out = out};

	json_open(&json, NULL, '{');
	json_text(&json, "schema", "mleak-address");
	json_number(&json, "version", SCHEMA_VERSION);
	json_text(&json, "mleak", MLEAK_VERSION);
	json_text(&json, "path", address->source.path);
	json_number(&json, "address", address->addr);
	json_number(&json, "at_ns", p.now_ns > p.start_ns ? p.now_ns - p.start_ns : 0);
	json_bool(&json, "known", address->nr_held != 0);
	json_open(&json, "processes", '[');
	for (size_t i = 0; i < address->nr; i++)
		put_answer(&p, &json, address, &address->answers[i]);
	json_close(&json, ']');
	json_close(&json, '}');
}

void address_free(struct address *address)
{
	if (!address)
		return;
	stack_names_free(address->named);
	for (size_t i = 0; address->answers && i < address->nr; i++)
		live_near_release(&address->answers[i].near);
	free(address->answers);
	free(address);
}
