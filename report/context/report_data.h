/* report_data.h - the formats for programs: what they are made of, and their printers
 *
 * Each printer writes the stacks of the view and the totals of the trace; all formats have the same
 * totals.  They return 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
#ifndef REPORT_REPORT_DATA_H
#define REPORT_REPORT_DATA_H

#include <stdio.h>

#include "report/base/json.h"
#include "report/replay/replay.h"
#include "report/view/places.h"
#include "report/view/stack_names.h"

/* What --fail-on-leak says of a report. */
struct verdict {
	bool leaks;	   /* more is left than is allowed, or a block was overrun */
	const char *doubt; /* why that is not known; NULL: it is */
};

struct growth;
struct thread_accounts;
struct stack_times;
struct verdicts;
struct stack_verdicts;

/* All of it is borrowed. */
struct report_data {
	const char *path; /* of the trace */
	const struct mlk_meta *meta;
	const struct block_filter *choice; /* as it was requested */
	const struct replay *leaks;
	const struct view *view;
	const struct places *places;		 /* of the view */
	const struct stack_names *overrun_names; /* of the stacks that print_overruns.h prints */
	struct suppressions *suppressions;	 /* that the view was made with; NULL: none */
	const struct verdict *verdict;		 /* for the formats of CI; else NULL */
	const struct growth *growth;		 /* to say beside stacks what grows; or NULL */
	const struct thread_accounts *accounts;	 /* for tables of threads, else NULL */
	const struct stack_times *times;	 /* for a page; else NULL */
	const struct verdicts *verdicts;	 /* where pointers are in the trace; else NULL */
	const struct stack_verdicts *by_verdict; /* of each stack; with the former */
	const char *resident; /* for a page: where the memory is, as lines of text; else NULL */
};

/* As what a table is printed: for people, or for programs. */
enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON };

/* How a table in place of stacks is printed; its view is to have all stacks: of what it sums up or
 * ranks, none may be missing. */
struct table_opts {
	enum table_format format;
	size_t top; /* only so many rows; 0: all */
};

/* What of all that is outstanding the view has, with what its top leaves out. */
struct live_amount report_data_selected(const struct report_data *export);

/* What of that is lost, by the pointers in memory; nothing where there are none. */
struct live_amount report_data_lost(const struct report_data *export);

/* What is outstanding and not in report_data_selected(). */
struct live_amount report_data_filtered(const struct report_data *export);

/* In place of blocks, for people: that none are outstanding, or that allocations were only counted.
 */
void print_no_blocks(FILE *out, const struct report_data *export);

/* JSON with the schema of doc/report-json.md. */
int print_json(FILE *out, const struct report_data *export);

/* CSV by RFC 4180: a header, then a row for each stack. */
int print_csv(FILE *out, const struct report_data *export);

/* A profile of pprof, compressed by gzip; the view is to have all stacks. */
int print_pprof(FILE *out, const struct report_data *export);

struct heaptrack_events;

/* The text that heaptrack_print and heaptrack_gui read; @events is what was printed of the replay
 * by heaptrack_events.h, the view is to have all stacks. */
int print_heaptrack(FILE *out, const struct report_data *export, struct heaptrack_events *events);

/* The file format of speedscope: a profile of bytes and one of blocks. */
int print_speedscope(FILE *out, const struct report_data *export);

/* One page of HTML: an overview, flame graphs and tables. */
int print_html(FILE *out, const struct report_data *export);

/* The stacks one after the other, as bcc's memleak prints them. */
int print_flat(FILE *out, const struct report_data *export);

/* Of several processes, what is said of that of stack @i of the view, as "sh (1234)"; else NULL. */
static inline const char *report_data_process(const struct report_data *export, size_t i)
{
	return view_process(export->view, view_stack(export->view, i)->process);
}

/* The id of the process of stack @i of the view. */
static inline uint32_t report_data_pid(const struct report_data *export, size_t i)
{
	return live_process(export->leaks->live, view_stack(export->view, i)->process).tgid;
}

/* Nanoseconds from the start of the recording to @time_ns, 0 for an earlier time. */
static inline uint64_t report_data_since_start(const struct report_data *export, uint64_t time_ns)
{
	return time_ns > export->meta->start_ns ? time_ns - export->meta->start_ns : 0;
}

/* How long the recording lasted, in nanoseconds. */
static inline uint64_t report_data_duration(const struct report_data *export)
{
	return report_data_since_start(export, export->leaks->condition.end_ns);
}

/* What options chose, as "blocks given out between 0.2 s and 0.5 s by thread 'x'", to be freed; ""
 * when it is all.  *@text is NULL on failure.  Returns 0 or -ENOMEM. */
int shown_text(char **text, const struct report_data *export);

/* Print it as a line of the summary, nothing when it is all.  Returns 0 or -ENOMEM; errors of
 * writing are left in @out for ferror(). */
int print_scope(FILE *out, const struct report_data *export);

/* Write it as the member `shown`: an object with a member for each option that chose.  Returns 0 or
 * -ENOMEM. */
int shown_json(struct json *json, const struct report_data *export);

#endif
