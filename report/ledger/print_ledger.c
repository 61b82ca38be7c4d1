/* print_ledger.c - see print_ledger.h */
#include "report/ledger/print_ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "mleak.h"
#include "report/base/json.h"
#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/ledger/ledger.h"
#include "report/ledger/print_keeper.h"
#include "report/view/stack_names.h"

#define SCHEMA_VERSION 1
#define FEW	       5   /* rows of a kind, for people */
#define LINE	       100 /* columns of functions */
#define NONE	       UINT32_MAX
#define OLDER	       "[before the recording]"

struct ledgers {
	struct ledgers_source source;
	struct stack_names *names;
	struct ledger *all;
	size_t nr;
};

static uint32_t stack_id(const struct ledgers *l, uint32_t stack)
{
	return l->source.leaks->stacks->all[stack].id;
}

static size_t most_rows(const struct ledgers *l)
{
	return l->source.top ? l->source.top : FEW;
}

/* The number of the row's stack; LEDGER_NO_STACK: it has none. */
static uint32_t stack_of(const struct ledger_row *row)
{
	if (row->kind == LEDGER_BLOCK || row->kind == LEDGER_MAPPED)
		return row->stack;
	return row->kind == LEDGER_KEPT && row->keeper.kind == KEEPER_BLOCK ? row->keeper.which
									    : LEDGER_NO_STACK;
}

static int want_names(struct ledgers *l, const struct ledger *ledger)
{
	int err = 0;

	for (size_t i = 0; i < ledger->nr && !err; i++)
		if (stack_of(&ledger->rows[i]) != LEDGER_NO_STACK)
			err = stack_names_want(l->names, stack_id(l, stack_of(&ledger->rows[i])));
	return err;
}

int ledgers_new(struct ledgers **out, const struct ledgers_source *source,
		const struct symbols_source *names, const struct view_opts *opts)
{
	struct ledgers *l = calloc(1, sizeof(*l));
	const struct residences *of = source->residences;
	struct module_paths modules;
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	l->source = *source;
	l->all = calloc(of->nr + 1, sizeof(*l->all));
	err = module_paths_init(&modules, source->leaks->images);
	if (!err)
		err = l->all ? stack_names_new(&l->names, names, opts) : -ENOMEM;
	for (size_t i = 0; i < of->nr && !err; i++) {
		const struct ledger_input input = {.of = &of->all[i],
						   .live = source->leaks->live,
						   .nr_stacks = source->leaks->stacks->nr,
						   .modules = &modules,
						   .trace = source->trace};

		if (source->pid && source->pid != of->all[i].tgid)
			continue;
		err = ledger_make(&l->all[l->nr++], &input);
		if (!err)
			err = want_names(l, &l->all[l->nr - 1]);
	}
	module_paths_release(&modules);
	if (!err)
		err = stack_names_resolve(l->names);
	if (err)
		ledgers_free(l);
	else
		*out = l;
	return err;
}

bool ledgers_any(const struct ledgers *ledgers)
{
	return ledgers->nr > 0;
}

/* Is every block of the process known?  Then what is between blocks is free, or the allocator's. */
static bool knows_all(const struct ledgers *l, const struct ledger *ledger)
{
	return ledger->whole || replay_knows_all(l->source.leaks, l->source.meta);
}

static uint64_t named_of(const struct ledger *ledger)
{
	uint64_t named = 0;

	for (int kind = 0; kind < LEDGER_OTHER; kind++)
		named += ledger->sums[kind];
	return named;
}

/* Beside what each page was found in: what the kernel had counted just before may be less. */
static uint64_t seen_of(const struct ledger *ledger)
{
	uint64_t seen = named_of(ledger) + ledger->sums[LEDGER_OTHER];

	return seen > ledger->rss ? seen : ledger->rss;
}

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static const char *process_name(const struct ledgers *l, uint32_t tgid)
{
	const struct replay *leaks = l->source.leaks;

	return live_nr_processes(leaks->live) == 1 ? leaks->comm
						   : processes_name(leaks->processes, tgid);
}

/* What a kind is, as far as the trace tells. */
static void print_kind(FILE *out, const struct ledgers *l, const struct ledger *ledger,
		       enum ledger_kind kind)
{
	char number[TEXT_NUMBER_MAX], size[SIZE_TEXT_MAX];

	if (kind == LEDGER_BLOCK) {
		fprintf(out, "%s live %s, of which %s were asked for",
			text_number(number, ledger->blocks.blocks),
			text_blocks(ledger->blocks.blocks), size_text(size, ledger->blocks.bytes));
		return;
	}
	if (kind == LEDGER_OLDER)
		fprintf(out, "%s ", text_number(number, ledger->older.blocks));
	fputs(ledger_kind_text(kind), out);
	if (kind == LEDGER_FREE)
		fprintf(out, "; %s of it in whole pages%s", size_text(size, ledger->whole_pages),
			ledger->trims ? ", which malloc_trim() gives back" : "");
	if (kind == LEDGER_ALLOCATOR)
		fputs(ledger->walked	     ? ": the allocator's own, and what it rounds up"
		      : knows_all(l, ledger) ? ": free, or the allocator's own"
					     : ": free, the allocator's own, or from before",
		      out);
}

static int print_row(FILE *out, const struct ledgers *l, const struct ledger *ledger,
		     const struct ledger_row *row)
{
	char size[SIZE_TEXT_MAX], *line;

	fprintf(out, "      %12s  ", size_cell(size, row->bytes));
	if (row->path) {
		text_print(out, row->path[0] ? row->path : "anonymous");
		fputc('\n', out);
		return 0;
	}
	if (row->kind == LEDGER_KEPT && row->keeper.kind != KEEPER_BLOCK) {
		print_keeper(out, ledger, row, l->source.leaks->threads);
		print_keeper_way(out, row);
		return 0;
	}
	if (stack_of(row) == LEDGER_NO_STACK) {
		fputs(OLDER "\n", out);
		return 0;
	}
	line = stack_names_line(l->names, stack_id(l, stack_of(row)), LINE, 0);
	if (!line)
		return -ENOMEM;
	fprintf(out, "%s%s", row->kind == LEDGER_KEPT ? "a block of " : "", line);
	free(line);
	if (row->kind == LEDGER_KEPT)
		print_keeper_way(out, row);
	else
		fputc('\n', out);
	return 0;
}

static int print_rows(FILE *out, const struct ledgers *l, const struct ledger *ledger,
		      enum ledger_kind kind)
{
	char number[TEXT_NUMBER_MAX], size[SIZE_TEXT_MAX];
	size_t shown = 0, left = 0;
	uint64_t bytes = 0;
	int err = 0;

	for (size_t i = 0; i < ledger->nr && !err; i++) {
		const struct ledger_row *row = &ledger->rows[i];

		if (row->kind != kind)
			continue;
		if (shown++ < most_rows(l)) {
			err = print_row(out, l, ledger, row);
			continue;
		}
		left++;
		bytes += row->bytes;
	}
	if (left)
		fprintf(out, "      %12s  in %s more\n", size_cell(size, bytes),
			text_number(number, left));
	return err;
}

/* Which blocks keep pages that are nearly empty. */
static int print_pins(FILE *out, const struct ledgers *l, const struct ledger *ledger)
{
	char number[TEXT_NUMBER_MAX], size[SIZE_TEXT_MAX];
	int err = 0;

	if (!ledger->nr_pins || !knows_all(l, ledger))
		return 0;
	fprintf(out,
		"  %s in %s page%s of which at most a quarter is in use cannot go back to the "
		"system; %s blocks are of:\n",
		size_text(size, ledger->pinned_bytes), text_number(number, ledger->pinned_pages),
		ledger->pinned_pages == 1 ? "" : "s", ledger->pinned_pages == 1 ? "its" : "their");
	for (size_t i = 0; i < ledger->nr_pins && i < most_rows(l) && !err; i++) {
		const struct ledger_row row = {.stack = ledger->pins[i].stack,
					       .bytes = (uint64_t)ledger->pins[i].bytes};

		err = print_row(out, l, ledger, &row);
	}
	return err;
}

static int print_one(FILE *out, const struct ledgers *l, const struct ledger *ledger)
{
	char size[SIZE_TEXT_MAX];
	uint64_t at = ledger->time_ns > l->source.meta->start_ns
			      ? ledger->time_ns - l->source.meta->start_ns
			      : 0;
	int err = 0;

	text_print(out, process_name(l, ledger->tgid));
	fprintf(out, " (%" PRIu32 ") at %.3f s: %s resident", ledger->tgid, (double)at / 1e9,
		size_text(size, ledger->rss));
	if (ledger->swap)
		fprintf(out, ", and %s in swap", size_text(size, ledger->swap));
	fprintf(out, "; %.1f %% is named\n", share(named_of(ledger), seen_of(ledger)));
	for (enum ledger_kind kind = 0; kind < LEDGER_NR && !err; kind++) {
		if (!ledger->sums[kind])
			continue;
		fprintf(out, "  %12s %5.1f %%  ", size_cell(size, ledger->sums[kind]),
			share(ledger->sums[kind], ledger->rss));
		print_kind(out, l, ledger, kind);
		fputc('\n', out);
		err = print_rows(out, l, ledger, kind);
	}
	if (ledger->unseen)
		fprintf(out, "  %12s %5.1f %%  came or went while it was read\n",
			size_cell(size, ledger->unseen), share(ledger->unseen, ledger->rss));
	if (ledger->lazy)
		fprintf(out, "  %s of it was freed lazily: the kernel takes it when it needs to\n",
			size_text(size, ledger->lazy));
	return err ? err : print_pins(out, l, ledger);
}

int print_ledgers(FILE *out, const struct ledgers *ledgers)
{
	int err = 0;

	for (size_t i = 0; i < ledgers->nr && !err; i++) {
		if (i)
			fputc('\n', out);
		err = print_one(out, ledgers, &ledgers->all[i]);
	}
	return err;
}

static void put_row(struct json *json, const struct ledgers *l, const struct ledger *ledger,
		    const struct ledger_row *row)
{
	json_open(json, NULL, '{');
	json_text(json, "kind", ledger_kind_word(row->kind));
	json_number(json, "bytes", row->bytes);
	if (row->kind == LEDGER_KEPT) {
		json_number(json, "mappings", row->mappings);
		json_number(json, "steps", row->keeper.steps);
	}
	if (row->path)
		json_text(json, "path", row->path);
	else if (stack_of(row) != LEDGER_NO_STACK)
		stack_names_json(l->names, json, stack_id(l, stack_of(row)));
	else
		print_keeper_json(json, ledger, row, l->source.leaks->threads);
	json_close(json, '}');
}

static void put_pins(struct json *json, const struct ledgers *l, const struct ledger *ledger)
{
	json_open(json, "nearly_empty", '{');
	json_number(json, "pages", ledger->pinned_pages);
	json_number(json, "bytes", ledger->pinned_bytes);
	json_open(json, "stacks", '[');
	for (size_t i = 0; i < ledger->nr_pins && (!l->source.top || i < l->source.top); i++) {
		json_open(json, NULL, '{');
		json_number(json, "bytes", (uint64_t)ledger->pins[i].bytes);
		json_number(json, "blocks", ledger->pins[i].blocks);
		if (ledger->pins[i].stack == LEDGER_NO_STACK)
			json_bool(json, "before", true);
		else
			stack_names_json(l->names, json, stack_id(l, ledger->pins[i].stack));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void put_one(struct json *json, const struct ledgers *l, const struct ledger *ledger)
{
	size_t shown = 0;
	uint32_t before = NONE;

	json_open(json, NULL, '{');
	json_number(json, "pid", ledger->tgid);
	json_text(json, "comm", process_name(l, ledger->tgid));
	json_number(json, "at_ns",
		    ledger->time_ns > l->source.meta->start_ns
			    ? ledger->time_ns - l->source.meta->start_ns
			    : 0);
	json_number(json, "rss", ledger->rss);
	json_number(json, "pss", ledger->pss);
	json_number(json, "swap", ledger->swap);
	json_number(json, "lazy_free", ledger->lazy);
	json_number(json, "named", named_of(ledger));
	json_bool(json, "all_blocks_known", knows_all(l, ledger));
	json_bool(json, "walked", ledger->walked);
	json_number(json, "free_pages", ledger->whole_pages);
	json_number(json, "changed", ledger->unseen);
	json_open(json, "kinds", '{');
	for (enum ledger_kind kind = 0; kind < LEDGER_NR; kind++)
		json_number(json, ledger_kind_word(kind), ledger->sums[kind]);
	json_close(json, '}');
	json_open(json, "rows", '[');
	for (size_t i = 0; i < ledger->nr; i++) {
		shown = ledger->rows[i].kind == before ? shown + 1 : 1;
		before = ledger->rows[i].kind;
		if (!l->source.top || shown <= l->source.top)
			put_row(json, l, ledger, &ledger->rows[i]);
	}
	json_close(json, ']');
	if (knows_all(l, ledger))
		put_pins(json, l, ledger);
	json_close(json, '}');
}

void print_ledgers_json(FILE *out, const struct ledgers *ledgers)
{
	struct json json = {.out = out};

	json_open(&json, NULL, '{');
	json_text(&json, "schema", "mleak-resident");
	json_number(&json, "version", SCHEMA_VERSION);
	json_text(&json, "mleak", MLEAK_VERSION);
	json_text(&json, "path", ledgers->source.path);
	json_open(&json, "processes", '[');
	for (size_t i = 0; i < ledgers->nr; i++)
		put_one(&json, ledgers, &ledgers->all[i]);
	json_close(&json, ']');
	json_close(&json, '}');
}

void ledgers_free(struct ledgers *ledgers)
{
	if (!ledgers)
		return;
	stack_names_free(ledgers->names);
	for (size_t i = 0; i < ledgers->nr; i++)
		ledger_release(&ledgers->all[i]);
	free(ledgers->all);
	free(ledgers);
}
