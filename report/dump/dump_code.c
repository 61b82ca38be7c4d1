/* dump_code.c - see dump_code.h */
#include "report/dump/dump_code.h"

#include <inttypes.h>
#include <zlib.h>

#include "report/base/text.h"

/* A line of its own: @label and @text. */
static void print_text(FILE *out, const char *label, const char *text)
{
	fprintf(out, "    %s ", label);
	text_print(out, text);
	putc('\n', out);
}

static void dump_function(FILE *out, const struct mlk_code *c)
{
	fprintf(out,
		"  CODE %" PRIu32 ", tgid %" PRIu32 ", language %" PRIu32 ", first line %" PRIu32
		", lines %" PRIu32 ", length %" PRIu32 ", crc %08lx\n",
		c->number, c->tgid, c->language, c->first_line, c->line_table, c->lines_len,
		c->lines_len ? crc32_z(0, c->lines, c->lines_len) : 0);
	print_text(out, "name", c->name);
	print_text(out, "file", c->file);
}

static void dump_interpreter(FILE *out, const struct mlk_interpreter *in)
{
	fprintf(out,
		"  INTERPRETER tgid %" PRIu32 ", time %" PRIu64 ", language %" PRIu32
		", known %" PRIu64 "\n",
		in->tgid, in->time_ns, in->language, in->known);
	print_text(out, "version", in->version);
	print_text(out, "why", in->why);
	for (uint32_t i = 0; i < in->nr_ranges; i++)
		fprintf(out, "    range 0x%" PRIx64 "-0x%" PRIx64 "\n", in->ranges[i].start,
			in->ranges[i].end);
	fputs("    counts", out);
	for (int i = 0; i < MLK_INTERPRETED_NR; i++)
		fprintf(out, " %" PRIu64, in->counts[i]);
	putc('\n', out);
}

void dump_code(FILE *out, const struct mlk_record *rec)
{
	if (rec->type == MLK_RECORD_CODE)
		dump_function(out, &rec->code);
	else
		dump_interpreter(out, &rec->interpreter);
}

void dump_frames(FILE *out, const struct mlk_event *e)
{
	if (e->nr_frames)
		fputs(", frames", out);
	for (uint32_t i = 0; i < e->nr_frames; i++)
		fprintf(out, " %" PRIu32 ":%" PRIu32, e->frames[i].code, e->frames[i].at);
}
