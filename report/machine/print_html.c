/* print_html.c - the page of flame.html with the data of a report in it */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/text.h"
#include "report/context/report_data.h"
#include "report/machine/print_html.h"
#include "report/machine/print_json.h"
#include "report/name/short_name.h"
#include "report/view/places.h"
#include "report/view/tree.h"

/* The bytes of the page, as they are in the source. */
__asm__(".section .rodata\n"
	"flame_page: .incbin \"report/machine/flame.html\"\n"
	"flame_page_end: .byte 0\n"
	".previous\n");
extern const char flame_page[], flame_page_end[];

/* What was fetched by `make speedscope`, if it was; it is a script. */
#ifdef SPEEDSCOPE
#define INCLUDE_VIEWER ".incbin \"" SPEEDSCOPE "\"\n"
#else
#define INCLUDE_VIEWER ""
#endif
__asm__(".section .rodata\n"
	"flame_viewer: " INCLUDE_VIEWER "flame_viewer_end: .byte 0\n"
	".previous\n");
extern const char flame_viewer[], flame_viewer_end[];

static void put_amount(struct json *json, const char *name, struct live_amount amount)
{
	if (amount.blocks)
		json_amount(json, name, amount);
}

static void put_count(struct json *json, const char *name, uint64_t blocks)
{
	if (!blocks)
		return;
	json_open(json, name, '{');
	json_number(json, "blocks", blocks);
	json_close(json, '}');
}

/* The rows of the page's table: what the summary of text lists, by the names that are shown. */
static void put_html_totals(struct json *json, const struct report_data *export)
{
	const struct live_totals *totals = &export->leaks->totals;

	json_open(json, "totals", '{');
	json_amount(json, "allocated", totals->allocated);
	json_amount(json, "freed", totals->freed);
	put_count(json, export->meta->whole_life ? "unknown frees" : "older blocks freed",
		  totals->unknown_frees);
	put_count(json, "inherited blocks freed", totals->inherited_frees);
	put_amount(json, "implied frees", totals->implied);
	put_amount(json, "gone at exec", totals->gone);
	json_amount(json, "outstanding", totals->outstanding);
	put_amount(json, "suspect", export->leaks->suspects);
	json_amount(json, "shown", view_shown(export->view));
	put_amount(json, "left out by top", export->view->left_out_amount);
	json_close(json, '}');
}

static int put_html_head(struct json *json, const struct report_data *export)
{
	const struct mlk_meta *meta = export->meta;
	char *title, *chosen, seconds[32], pid[32] = "";

	if (!meta->of_kernel)
		snprintf(pid, sizeof(pid), " (pid %llu)", (unsigned long long)meta->tgid);
	if (asprintf(&title, "mleak: outstanding memory of %s%s%s%s",
		     meta->command[0] ? meta->command : meta->exe, pid,
		     meta->hostname[0] ? " on " : "", meta->hostname) < 0)
		return -ENOMEM;
	json_text(json, "title", title);
	free(title);
	if (shown_text(&chosen, export))
		return -ENOMEM;
	json_text(json, "shown", chosen);
	free(chosen);
	put_html_totals(json, export);
	snprintf(seconds, sizeof(seconds), "%.3f", (double)report_data_duration(export) / 1e9);
	json_text(json, "seconds", seconds);
	json_number(json, "lost", replay_lost(export->leaks));
	json_open(json, "unwound", '{');
	json_number(json, "allocations", replay_allocations(export->leaks));
	json_number(json, "complete", export->leaks->status_counts[DWUNW_STATUS_ENDED]);
	json_close(json, '}');
	return 0;
}

int html_frame(struct json *json, const struct place *place)
{
	char line[sizeof(":4294967295")] = "";
	char *name = short_name(place->function), *text = NULL;

	if (place->file[0] && place->line)
		snprintf(line, sizeof(line), ":%" PRIu32, place->line);
	if (name &&
	    asprintf(&text, "%s%s%s%s%s%s%s%s", name, place->inlined ? " (inlined)" : "",
		     place->module[0] ? " [" : "", text_file_name(place->module),
		     place->module[0] ? "]" : "", place->file[0] ? " " : "", place->file, line) < 0)
		text = NULL;
	if (text)
		json_text(json, NULL, text);
	free(name);
	free(text);
	return text ? 0 : -ENOMEM;
}

static int put_html_stacks(struct json *json, const struct report_data *export)
{
	size_t most = export->view->nr;
	int err = 0;

	most = most < HTML_MAX_STACKS ? most : HTML_MAX_STACKS;
	json_open(json, "stacks", '[');
	for (size_t i = 0; i < most && !err; i++) {
		size_t nr;
		const uint32_t *path = places_path(export->places, i, &nr);

		json_open(json, NULL, '{');
		json_number(json, "bytes", view_stack(export->view, i)->bytes);
		json_number(json, "blocks", view_stack(export->view, i)->blocks);
		json_open(json, "frames", '[');
		for (size_t at = 0; at < nr && !err; at++)
			err = html_frame(json, &export->places->all[path[at]]);
		if (report_data_process(export, i))
			json_text(json, NULL, report_data_process(export, i));
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
	json_number(json, "more", export->view->nr - most);
	return err;
}

struct graph {
	struct labels *labels; /* of the places, and of the processes */
	struct tree *tree;
	struct tree_names *names;
};

/* Recursion is as deep as a stack. */
static void put_nodes(struct json *json, const struct graph *graph, uint32_t first, uint64_t depth)
{
	for (uint32_t at = first; at != TREE_NONE; at = graph->tree->all[at].next) {
		const struct tree_node *node = &graph->tree->all[at];

		json_number(json, NULL, depth);
		json_number(json, NULL, graph->names->numbers[at]);
		json_number(json, NULL, node->bytes);
		json_number(json, NULL, node->blocks);
		put_nodes(json, graph, node->first, depth + 1);
	}
}

/* Write the labels of stack @i, outermost first, to @labels, and how many to *@nr.  Returns 0 or
 * -ENOMEM. */
static int html_path_of(const struct graph *graph, const struct report_data *export, size_t i,
			uint32_t labels[VIEW_MAX_PATH], size_t *nr)
{
	const char *process = report_data_process(export, i);
	int err = 0;

	*nr = place_labels_path(export->places, i, export->places->numbers, labels);
	if (!process)
		return 0;
	if (*nr == VIEW_MAX_PATH)
		--*nr;
	memmove(labels + 1, labels, *nr * sizeof(*labels));
	++*nr;
	err = labels_intern(graph->labels, LABELS_NO_MODULE, process, "", &labels[0]);
	return err;
}

static int add_stacks(struct graph *graph, const struct report_data *export)
{
	uint32_t path[VIEW_MAX_PATH];
	size_t nr;
	int err = 0;

	for (size_t i = 0; i < export->view->nr && !err; i++) {
		const struct stack *stack = view_stack(export->view, i);

		err = html_path_of(graph, export, i, path, &nr);
		if (!err)
			err = tree_add(graph->tree, path, nr, stack->bytes, stack->blocks);
	}
	return err ? err : tree_tell_apart(graph->tree, graph->labels);
}

static int name_nodes(struct graph *graph, const struct report_data *export)
{
	uint32_t path[VIEW_MAX_PATH];
	size_t nr;
	int err = tree_names_new(&graph->names, graph->tree, graph->labels);

	for (size_t i = 0; i < export->view->nr && !err; i++) {
		err = html_path_of(graph, export, i, path, &nr);
		if (!err)
			err = tree_names_add(graph->names, path, nr);
	}
	return err;
}

static int put_graph(struct json *json, const struct report_data *export)
{
	struct graph graph = {.labels = export->places->labels};
	int err = tree_new(&graph.tree);

	if (!err)
		err = add_stacks(&graph, export);
	if (!err)
		err = name_nodes(&graph, export);
	if (err)
		goto out;
	tree_names_print(graph.names, json, "names");
	json_open(json, "nodes", '[');
	put_nodes(json, &graph, graph.tree->all[TREE_ROOT].first, 1);
	json_close(json, ']');
out:
	tree_names_free(graph.names);
	tree_free(graph.tree);
	return err;
}

static int put_data(struct json *json, const void *arg)
{
	const struct report_data *export = arg;
	int err = put_html_head(json, export);

	if (!err)
		err = put_html_stacks(json, export);
	return err ? err : put_graph(json, export);
}

/* Print the page from @at up to @placeholder, which it has.  Returns where it goes on. */
static const char *put_page(FILE *out, const char *at, const char *placeholder)
{
	const char *found = strstr(at, placeholder);

	fwrite(at, 1, (size_t)(found - at), out);
	return found + strlen(placeholder);
}

int html_page(FILE *out, int (*put)(struct json *json, const void *arg), const void *arg)
{
	struct json json = {.out = out};
	const char *at = put_page(out, flame_page, "@DATA@");
	int err;

	json_open(&json, NULL, '{');
	err = put(&json, arg);
	json_close(&json, '}');
	at = put_page(out, at, "@SPEEDSCOPE@");
	/* it knows of no differences */
	if (put == put_data)
		fwrite(flame_viewer, 1, (size_t)(flame_viewer_end - flame_viewer), out);
	fwrite(at, 1, (size_t)(flame_page_end - at), out);
	return err;
}

int print_html(FILE *out, const struct report_data *export)
{
	return html_page(out, put_data, export);
}
