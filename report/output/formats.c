/* formats.c - see formats.h */
#include "report/output/formats.h"

#include <errno.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"
#include "report/context/memory_answer.h"
#include "report/context/print_overruns.h"
#include "report/context/report_data.h"
#include "report/machine/print_ci.h"
#include "report/machine/print_folded.h"
#include "report/text/growth_answer.h"
#include "report/text/print_summary.h"
#include "report/text/print_tree.h"
#include "report/text/verdict_answer.h"
#include "report/view/missing_symbols.h"

static int print_head(FILE *out, const struct report_data *export, const struct growth_rows *grown)
{
	int err = print_summary(out, export->path, export->meta, export->leaks,
				export->view->opts.each_process);

	if (!err)
		err = print_scope(out, export);
	if (!err && grown->nr && !export->meta->whole_life)
		print_growth_answer(out, export, grown);
	if (!err)
		print_verdict_answer(out, export);
	if (!err)
		err = print_memory_answer(out, export);
	fputc('\n', out);
	return err;
}

/* Say how much the options leave out. */
static void print_not_asked_for(FILE *out, const struct report_data *export)
{
	struct live_amount filtered = report_data_filtered(export);
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];

	if (filtered.blocks)
		fprintf(out, "\nfiltered out: %s %s, %s\n", text_number(blocks, filtered.blocks),
			text_blocks(filtered.blocks), size_text(bytes, filtered.bytes));
	if (export->suppressions)
		suppressions_print(export->suppressions, out);
	print_overruns(out, export);
}

/* Print what @body, called with @arg, prints, between what all texts begin and end with; if @names
 * are shown, what would give more of them is found out meanwhile. */
static int print_text_report(FILE *out, const struct report_data *export, bool names,
			     int (*body)(FILE *out, const struct report_data *export,
					 const struct growth_rows *grown, const void *arg),
			     const void *arg)
{
	struct missing_symbols *unnamed = NULL;
	struct growth_rows grown = {0};
	int err = names ? missing_symbols_new(&unnamed, export->view, export->leaks) : 0;

	if (!err && export->growth)
		err = growth_rows_init(&grown, export, export->growth);
	if (!err)
		err = print_head(out, export, &grown);
	if (!err)
		err = body(out, export, &grown, arg);
	if (!err && grown.nr)
		print_growth_line(out, export, &grown);
	growth_rows_release(&grown);
	if (!err)
		print_not_asked_for(out, export);
	if (!err && unnamed)
		err = missing_symbols_print(unnamed, out);
	missing_symbols_free(unnamed);
	return err;
}

static int print_tree_body(FILE *out, const struct report_data *export,
			   const struct growth_rows *grown, const void *arg)
{
	bool inverted = export->view->opts.inverted;
	/* as the answer above the tree: of a program's whole life all that is left has grown */
	bool marks = grown->nr && !export->meta->whole_life && growth_is_told(export);

	(void)arg;
	if (!export->view->nr) {
		print_no_blocks(out, export);
		return 0;
	}
	return print_view_as_tree(out, export->view, inverted ? "innermost first" : "callers first",
				  marks ? grown : NULL);
}

static int print_as_tree(FILE *out, const struct report_data *export)
{
	return print_text_report(out, export, true, print_tree_body, NULL);
}

static int print_flat_body(FILE *out, const struct report_data *export,
			   const struct growth_rows *grown, const void *arg)
{
	(void)grown;
	(void)arg;
	return print_flat(out, export);
}

static int print_as_flat(FILE *out, const struct report_data *export)
{
	return print_text_report(out, export, true, print_flat_body, NULL);
}

static int print_as_folded(FILE *out, const struct report_data *export)
{
	return print_folded(out, export->leaks->comm, export->view);
}

static const struct format {
	const char *name;
	int (*print)(FILE *out, const struct report_data *export); /* NULL: it needs more */
	bool history;
	bool places;
	bool verdicts;
} formats[] = {
	[FORMAT_TREE] = {"tree", print_as_tree, false, false, true},
	[FORMAT_FLAT] = {"flat", print_as_flat, false, true, true},
	[FORMAT_FOLDED] = {"folded", print_as_folded, false, false, false},
	[FORMAT_JSON] = {"json", print_json, false, true, true},
	[FORMAT_CSV] = {"csv", print_csv, false, true, true},
	[FORMAT_PPROF] = {"pprof", print_pprof, true, true, true},
	[FORMAT_HEAPTRACK] = {"heaptrack", NULL, true, true, false},
	[FORMAT_SPEEDSCOPE] = {"speedscope", print_speedscope, false, true, false},
	[FORMAT_HTML] = {"html", print_html, true, true, true},
	[FORMAT_JUNIT] = {"junit", print_junit, false, true, false},
	[FORMAT_GITHUB] = {"github", print_github, false, true, false},
};

bool format_wants_verdict(enum report_format format)
{
	return format == FORMAT_JUNIT || format == FORMAT_GITHUB;
}

bool format_has_history(enum report_format format)
{
	return formats[format].history;
}

bool format_has_verdicts(enum report_format format)
{
	return formats[format].verdicts;
}

bool format_wants_places(enum report_format format)
{
	return formats[format].places;
}

enum table_format format_of_table(enum report_format format)
{
	return format == FORMAT_CSV ? TABLE_CSV : format == FORMAT_JSON ? TABLE_JSON : TABLE_TEXT;
}

static bool shows_names(const struct table *table)
{
	return !table->timeline && !group_is_threads(table->by) && table->by != GROUP_SIZE &&
	       table->by < GROUP_AGE;
}

static int print_table_body(FILE *out, const struct report_data *export,
			    const struct growth_rows *grown, const void *arg)
{
	const struct table *table = arg;

	(void)grown;
	if (table->by)
		return print_groups(out, export, table->by, &table->opts);
	return table->timeline ? print_timeline(out, export, table->growth, &table->opts)
			       : print_growth(out, export, table->growth, &table->opts);
}

int format_print_table(FILE *out, const struct report_data *export, const struct table *table)
{
	if (table->opts.format != TABLE_TEXT)
		return print_table_body(out, export, NULL, table);
	return print_text_report(out, export, shows_names(table), print_table_body, table);
}

int format_print(FILE *out, enum report_format format, const struct report_data *export,
		 struct heaptrack_events *events)
{
	return formats[format].print ? formats[format].print(out, export)
				     : print_heaptrack(out, export, events);
}
