/* formats.c - see formats.h */
#include "report/formats.h"

#include <errno.h>
#include <string.h>

#include "report/print_folded.h"
#include "report/print_summary.h"
#include "report/print_tree.h"

static int print_as_tree(FILE *out, const struct export *export)
{
	print_summary(out, export->path, export->meta, export->leaks);
	return print_view_as_tree(out, export->view,
				  view_options(export->view)->inverted ? "innermost first"
								       : "callers first");
}

static int print_as_flat(FILE *out, const struct export *export)
{
	print_summary(out, export->path, export->meta, export->leaks);
	return print_flat(out, export);
}

static int print_as_folded(FILE *out, const struct export *export)
{
	return print_folded(out, leaks_comm(export->leaks), export->view);
}

static const struct format {
	const char *name;
	int (*print)(FILE *out, const struct export *export); /* NULL: it needs more */
	bool history;
	bool places;
} formats[] = {
	[FORMAT_TREE] = {"tree", print_as_tree, false, false},
	[FORMAT_FLAT] = {"flat", print_as_flat, false, true},
	[FORMAT_FOLDED] = {"folded", print_as_folded, false, false},
	[FORMAT_JSON] = {"json", print_json, false, true},
	[FORMAT_CSV] = {"csv", print_csv, false, true},
	[FORMAT_PPROF] = {"pprof", print_pprof, true, true},
	[FORMAT_HEAPTRACK] = {"heaptrack", NULL, true, true},
	[FORMAT_SPEEDSCOPE] = {"speedscope", print_speedscope, false, true},
	[FORMAT_HTML] = {"html", print_html, false, true},
};

int format_parse(const char *name, enum report_format *format)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name)) {
			*format = (enum report_format)i;
			return 0;
		}
	return -EINVAL;
}

bool format_has_history(enum report_format format)
{
	return formats[format].history;
}

bool format_wants_places(enum report_format format)
{
	return formats[format].places;
}

int format_print(FILE *out, enum report_format format, const struct export *export,
		 struct heaptrack_events *events)
{
	return formats[format].print ? formats[format].print(out, export)
				     : print_heaptrack(out, export, events);
}
