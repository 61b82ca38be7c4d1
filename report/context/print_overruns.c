/* print_overruns.c - see print_overruns.h */
#include "report/context/print_overruns.h"

#include <ctype.h>
#include <inttypes.h>

#include "report/base/text.h"
#include "report/context/print_block.h"

#define STACK_INDENT "      "
#define LINE_BYTES   16 /* bytes of an overrun in a line */

static size_t nr_shown(const struct overruns *overruns)
{
	size_t nr = overruns->sites.nr;

	return nr < OVERRUNS_SHOWN ? nr : OVERRUNS_SHOWN;
}

static const struct overrun *first_of(const struct overruns *overruns, size_t site)
{
	return overruns->all[overruns->sites.all[site].first];
}

static int want(struct stack_names *named, const struct replay *leaks, const struct overrun *o)
{
	int err = 0;

	if (o->known)
		err = stack_names_want(named, o->alloc_stack);
	if (!err && o->found_stack != OVERRUNS_NO_STACK)
		err = stack_names_want(named, o->found_stack);
	return err || !o->looked ? err : block_want_around(named, leaks, &o->around);
}

int overruns_names(struct stack_names **out, const struct replay *leaks,
		   const struct symbols_source *source, const struct view_opts *opts)
{
	const struct overruns *overruns = leaks->overruns;
	int err = stack_names_new(out, source, opts);

	for (size_t i = 0; !err && i < nr_shown(overruns); i++)
		err = want(*out, leaks, first_of(overruns, i));
	if (!err)
		err = stack_names_resolve(*out);
	if (err) {
		stack_names_free(*out);
		*out = NULL;
	}
	return err;
}

/* Why the last blocks were not checked; NULL: they were. */
static const char *unlooked(const struct mlk_condition *c)
{
	if (c->losses.count[MLK_LOST_LOOK])
		return "process that ended without notice, as by SIGKILL";
	return c->reason == MLK_END_EXITED ? NULL : "process that continued";
}

void print_overruns_count(FILE *out, const struct mlk_meta *meta, const struct replay *leaks)
{
	const char *why = unlooked(&leaks->condition);
	size_t nr = leaks->overruns->nr;
	char number[TEXT_NUMBER_MAX];

	if (nr)
		fprintf(out,
			"  OVERRUNS: %s found, of blocks written beyond their bounds; they follow "
			"at the end\n",
			text_number(number, nr));
	else if (meta->guarded)
		fprintf(out,
			"  no overruns%s: the bytes around each block were watched, except for "
			"mappings\n",
			why ? " found" : "");
	if (meta->guarded && why)
		fprintf(out, "  not checked for overruns: the last blocks of a %s\n", why);
}

static void print_bytes(FILE *out, const struct overrun *o)
{
	for (uint32_t at = 0; o->bytes && at < o->len; at += LINE_BYTES) {
		uint32_t end = o->len - at < LINE_BYTES ? o->len : at + LINE_BYTES;

		fprintf(out, "  offset %6" PRId64 ": ", o->offset + at);
		for (uint32_t i = at; i < end; i++)
			fprintf(out, " %02x", o->bytes[i]);
		fprintf(out, "%*s  ", (int)(3 * (at + LINE_BYTES - end)), "");
		for (uint32_t i = at; i < end; i++)
			fputc(isprint(o->bytes[i]) ? o->bytes[i] : '.', out);
		fputc('\n', out);
	}
}

/* "7 bytes were written behind a block of 47 bytes, from offset 47 on" */
static void print_what(FILE *out, const struct overrun *o)
{
	char number[TEXT_NUMBER_MAX];
	uint64_t gap;

	fprintf(out, "\n%" PRIu32 " %s written %s a block", o->len,
		o->len == 1 ? "byte was" : "bytes were", o->offset < 0 ? "before" : "behind");
	if (o->size != UINT64_MAX)
		fprintf(out, " of %s %s", text_number(number, o->size),
			o->size == 1 ? "byte" : "bytes");
	fprintf(out, ", from offset %" PRId64, o->offset);
	gap = o->offset < 0 ? -(uint64_t)o->offset - o->len : (uint64_t)o->offset - o->size;
	if (gap && (o->offset < 0 || o->size != UINT64_MAX))
		fprintf(out, " (%s %s %s it)", text_number(number, gap),
			gap == 1 ? "byte" : "bytes", o->offset < 0 ? "before" : "behind");
	if (o->changed < o->len)
		fprintf(out, "; %" PRIu32 " of them changed", o->changed);
	fputc('\n', out);
}

/* What found it, and how. */
static void print_finder(const struct block_printer *p, const struct overrun *o)
{
	static const char *const found[MLK_FOUND_NR] = {
		[MLK_FOUND_FREE] = "freed it",
		[MLK_FOUND_REALLOC] = "reallocated it",
		[MLK_FOUND_EXIT] = "ended the process, while it was still in use",
		[MLK_FOUND_EXEC] =
			"was about to execute another program, while it was still in use",
	};
	const char *how = o->found < MLK_FOUND_NR ? found[o->found] : NULL;

	fputs("  found when ", p->out);
	print_thread(p, o->tgid, o->tid);
	fprintf(p->out, " %s, at ", how ? how : "looked");
	print_time(p, o->time_ns);
	fputs(o->found_stack == OVERRUNS_NO_STACK ? "\n" : ", by\n", p->out);
	if (o->found_stack != OVERRUNS_NO_STACK)
		stack_names_print(p->named, p->out, o->found_stack, STACK_INDENT);
}

static void print_site(struct block_printer *p, const struct overrun_site *site,
		       const struct overrun *o)
{
	char number[TEXT_NUMBER_MAX];

	p->now_ns = o->time_ns;
	print_what(p->out, o);
	print_bytes(p->out, o);
	if (site->nr > 1)
		fprintf(p->out,
			"  the first of %s blocks with this allocation stack that were written "
			"%s their bounds\n",
			text_number(number, site->nr), o->offset < 0 ? "before" : "behind");
	if (o->known)
		print_block(p, "the block", &o->block);
	else
		fprintf(p->out,
			"  the block: 0x%" PRIx64 ", whose allocation is not in the trace\n",
			o->addr);
	print_finder(p, o);
	if (o->looked)
		print_neighbours(p, "", &o->around);
}

void print_overruns(FILE *out, const struct report_data *export)
{
	const struct overruns *overruns = export->leaks->overruns;
	struct block_printer p = {.out = out,
				  .leaks = export->leaks,
				  .named = export->overrun_names,
				  .start_ns = export->meta->start_ns};
	size_t nr = overruns->nr, shown = nr_shown(overruns);
	char number[TEXT_NUMBER_MAX];

	if (!nr)
		return;
	fprintf(out, "\nOVERRUNS: %s found, of blocks written beyond their bounds\n",
		text_number(number, nr));
	for (size_t i = 0; i < shown; i++)
		print_site(&p, &overruns->sites.all[i], first_of(overruns, i));
	if (overruns->sites.nr > shown)
		fprintf(out, "\nand blocks with %s other allocation stacks\n",
			text_number(number, overruns->sites.nr - shown));
}

static void put_bytes(struct json *json, const struct overrun *o)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * MLK_MAX_OVERRUN + 1];
	size_t len = 0;

	for (uint32_t i = 0; o->bytes && i < o->len; i++) {
		text[len++] = digits[o->bytes[i] >> 4];
		text[len++] = digits[o->bytes[i] & 15];
	}
	text[len] = '\0';
	json_text(json, "bytes", text);
}

static void put_finder(const struct block_printer *p, struct json *json, const struct overrun *o)
{
	static const char *const found[MLK_FOUND_NR] = {
		[MLK_FOUND_FREE] = "free",
		[MLK_FOUND_REALLOC] = "realloc",
		[MLK_FOUND_EXIT] = "exit",
		[MLK_FOUND_EXEC] = "exec",
	};
	const char *how = o->found < MLK_FOUND_NR ? found[o->found] : NULL;

	json_open(json, "found", '{');
	json_text(json, "at", how ? how : "unknown");
	json_number(json, "time_ns", o->time_ns > p->start_ns ? o->time_ns - p->start_ns : 0);
	json_number(json, "thread", o->tid);
	json_text(json, "thread_name", thread_names_get(p->leaks->chosen.threads, o->tgid, o->tid));
	if (o->found_stack != OVERRUNS_NO_STACK)
		stack_names_json(p->named, json, o->found_stack);
	json_close(json, '}');
}

static void put_site(struct block_printer *p, struct json *json, const struct overrun_site *site,
		     const struct overrun *o)
{
	p->now_ns = o->time_ns;
	json_open(json, NULL, '{');
	json_number(json, "blocks", site->nr);
	json_number(json, "pid", o->tgid);
	json_number(json, "address", o->addr);
	if (o->size != UINT64_MAX)
		json_number(json, "size", o->size);
	json_text(json, "side", o->offset < 0 ? "before" : "behind");
	json_number(json, "distance",
		    o->offset < 0 ? -(uint64_t)o->offset : (uint64_t)o->offset - o->size);
	json_number(json, "length", o->len);
	json_number(json, "changed", o->changed);
	put_bytes(json, o);
	put_finder(p, json, o);
	if (o->known)
		block_json(p, json, "block", &o->block);
	if (o->looked)
		neighbours_json(p, json, &o->around);
	json_close(json, '}');
}

void overruns_json(struct json *json, const struct report_data *export)
{
	const struct overruns *overruns = export->leaks->overruns;
	struct block_printer p = {.leaks = export->leaks,
				  .named = export->overrun_names,
				  .start_ns = export->meta->start_ns};

	json_open(json, "overruns", '{');
	json_bool(json, "guarded", export->meta->guarded != 0);
	json_number(json, "found", overruns->nr);
	json_number(json, "sites", overruns->sites.nr);
	json_open(json, "first_sites", '[');
	for (size_t i = 0; i < nr_shown(overruns); i++)
		put_site(&p, json, &overruns->sites.all[i], first_of(overruns, i));
	json_close(json, ']');
	json_close(json, '}');
}
