/* event_line.c - see event_line.h */
#include "report/trace/event_line.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/base/event_names.h"
#include "report/base/text.h"

/* The function that was called, or what else happened. */
static void put_what(FILE *out, const struct mlk_event *event)
{
	const char *name = event->kind == MLK_ALLOC   ? event_func_name(event->func)
			   : event->kind == MLK_PAGES ? event_pages_name(event->func)
						      : NULL;

	if (name) {
		fputs(name, out);
		return;
	}
	name = event_kind_name(event->kind);
	for (const char *c = name ? name : "unknown"; *c; c++)
		fputc(tolower((unsigned char)*c), out);
}

/* A name as one word; none is "-". */
static void put_word(FILE *out, const char *text)
{
	char *safe = text_escape(text);

	for (char *c = safe; c && *c; c++)
		if (*c == ' ')
			*c = '_';
	fputs(safe && *safe ? safe : "-", out);
	free(safe);
}

/* In seconds, from the start on. */
static void put_time(FILE *out, uint64_t time_ns, uint64_t start_ns)
{
	uint64_t since = time_ns > start_ns ? time_ns - start_ns : 0;

	fprintf(out, "%" PRIu64 ".%09" PRIu64 " ", since / 1000000000, since % 1000000000);
}

void print_event(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		 const struct thread_names *names)
{
	put_time(out, event->time_ns, start_ns);
	fprintf(out, "%" PRIu32 "/%" PRIu32 " ", event->tgid, event->tid);
	put_word(out, thread_names_get(names, event->tgid, event->tid));
	fputc(' ', out);
	put_what(out, event);
	if (event->kind == MLK_ALLOC || event->kind == MLK_UNMAP || event->kind == MLK_PAGES)
		fprintf(out, " %" PRIu64, event->size);
	if (event->kind == MLK_FORK)
		fprintf(out, " %" PRIu64, event->addr);
	else if (event->kind != MLK_EXEC && event->kind != MLK_EXIT)
		fprintf(out, " 0x%" PRIx64, event->addr);
	if (event->kind == MLK_ALLOC && event->flags & MLK_EVENT_RESERVED)
		fputs(" reserved", out);
}

void print_event_line(FILE *out, const struct mlk_event *event, uint64_t start_ns,
		      const struct thread_names *names)
{
	print_event(out, event, start_ns, names);
	fputc('\n', out);
}

void print_mark_line(FILE *out, const struct trace_mark *mark, uint64_t start_ns)
{
	put_time(out, mark->time_ns, start_ns);
	fputs("0/0 - mark ", out);
	text_print(out, trace_mark_text(mark));
	fputc('\n', out);
}
