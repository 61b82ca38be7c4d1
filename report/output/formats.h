/* formats.h - the formats of a report: their names, and what prints each */
#ifndef REPORT_FORMATS_H
#define REPORT_FORMATS_H

#include "report/context/report_data.h"
#include "report/output/group_by.h"
#include "report/output/print_growth.h"

/* What --format names. */
enum report_format {
	FORMAT_TREE,
	FORMAT_FLAT,
	FORMAT_FOLDED,
	FORMAT_JSON,
	FORMAT_CSV,
	FORMAT_PPROF,
	FORMAT_HEAPTRACK,
	FORMAT_SPEEDSCOPE,
	FORMAT_HTML,
	FORMAT_JUNIT,
	FORMAT_GITHUB,
};

/* Whether a format shows what --fail-on-leak says, and needs the verdict of struct report_data. */
bool format_wants_verdict(enum report_format format);

/* Whether a format also contains stacks without outstanding blocks. */
bool format_has_history(enum report_format format);

/* Whether it needs struct report_data's places. */
bool format_wants_places(enum report_format format);

/* Whether it tells what the pointers in memory say, if the trace has any. */
bool format_has_verdicts(enum report_format format);

/* Print the report.  @events is for FORMAT_HEAPTRACK, else NULL.  Returns 0, -ENOMEM or -EIO;
 * errors of writing are left in @out for ferror(). */
int format_print(FILE *out, enum report_format format, const struct report_data *export,
		 struct heaptrack_events *events);

/* How a table is printed where @format is requested: as text unless it is CSV or JSON. */
enum table_format format_of_table(enum report_format format);

/* A table in place of stacks. */
struct table {
	enum group_key by;	     /* or GROUP_NONE: */
	const struct growth *growth; /* how stacks grew */
	bool timeline;		     /* all of them together, rather than each */
	struct table_opts opts;
};

/* Print it.  Returns 0 or -ENOMEM; errors of writing are left in @out for ferror(). */
int format_print_table(FILE *out, const struct report_data *export, const struct table *table);

#endif
