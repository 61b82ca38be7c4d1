/* group_by.c - see group_by.h */
#include "report/output/group_by.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/sizes.h"
#include "report/base/strings.h"
#include "report/base/text.h"
#include "report/context/stack_notes.h"
#include "report/context/table_rows.h"
#include "report/machine/print_json.h"
#include "report/name/short_name.h"
#include "report/output/print_threads.h"
#include "report/terminal/color.h"

#define SCHEMA_VERSION 1

struct group {
	struct live_amount own, with_callees;
	uint64_t order;		  /* of sizes and ages */
	size_t counted;		  /* the last stack that was added to with_callees, plus one */
	uint32_t name;		  /* number of the string */
	const struct place *told; /* of a function whose module is told; else NULL */
};

struct groups {
	const struct report_data *export;
	enum group_key key;
	bool *shown;	       /* by number of stack */
	struct strings *names; /* "" is none of a group */
	struct group *all;     /* by number of name, less one */
	size_t room;
	int err;
};

static const char *const names[] = {
	[GROUP_MODULE] = "module",     [GROUP_SIZE] = "size",	[GROUP_FILE] = "file",
	[GROUP_FUNCTION] = "function", [GROUP_AGE] = "age",	[GROUP_PROCESS] = "process",
	[GROUP_CGROUP] = "cgroup",     [GROUP_CACHE] = "cache", [GROUP_ORDER] = "order",
	[GROUP_FLAGS] = "flags",
};

static bool is_by_stack(enum group_key key)
{
	return key == GROUP_MODULE || key == GROUP_FUNCTION || key == GROUP_FILE;
}

/* The group called @name, valid until the next one is made, or NULL: no memory. */
static struct group *group_of(struct groups *g, const char *name)
{
	uint32_t number;

	if (strings_intern(g->names, name, &number) ||
	    array_cover(&g->all, &g->room, number, sizeof(*g->all)))
		return NULL;
	g->all[number - 1].name = number;
	return &g->all[number - 1];
}

/* The group of @place, or NULL: no memory. */
static struct group *group_of_place(struct groups *g, const struct place *place)
{
	const char *text = g->key == GROUP_MODULE ? place->module : place->file;
	struct group *group;
	char *function;

	if (g->key != GROUP_FUNCTION)
		return group_of(g, *text ? text : "[unknown]");
	function = place_function(place);
	group = function ? group_of(g, *function ? function : "[unknown]") : NULL;
	if (group && place->told)
		group->told = place;
	free(function);
	return group;
}

static int add_group_stack(struct groups *g, size_t i)
{
	const struct stack *stack = view_stack(g->export->view, i);
	size_t nr;
	const uint32_t *path = places_path(g->export->places, i, &nr);

	for (size_t at = 0; at < nr; at++) {
		const struct place *place = &g->export->places->all[path[at]];
		struct group *group;

		/* what is said in place of missing callers is no frame */
		if (at && at == nr - 1 && stack->status != DWUNW_STATUS_ENDED)
			break;
		group = group_of_place(g, place);
		if (!group)
			return -ENOMEM;
		if (!at)
			live_amount_add(&group->own, stack_outstanding(stack));
		if (group->counted == i + 1)
			continue; /* a recursion */
		live_amount_add(&group->with_callees, stack_outstanding(stack));
		group->counted = i + 1;
	}
	return 0;
}

static uint64_t name_size(const struct live_block *block, char *text, size_t room)
{
	uint64_t last = 1;

	while (last < block->size && last <= UINT64_MAX / 2)
		last *= 2;
	if (last <= 2)
		snprintf(text, room, "%" PRIu64, block->size);
	else
		snprintf(text, room, "%" PRIu64 " - %" PRIu64, last / 2 + 1, last);
	return last <= 2 ? block->size : last;
}

static uint64_t name_age(uint64_t end_ns, const struct live_block *block, char *text, size_t room)
{
	size_t i = ages_class(end_ns > block->time_ns ? end_ns - block->time_ns : 0);

	snprintf(text, room, "%s", ages_text(i));
	return i;
}

/* Whose @block is, in the form that the kernel's have. */
static void name_process(const struct groups *g, const struct live_block *block, char *text,
			 size_t room)
{
	const struct replay *leaks = g->export->leaks;
	bool single = live_nr_processes(leaks->live) == 1;
	char *name =
		text_escape(single ? leaks->comm : processes_name(leaks->processes, block->tgid));

	snprintf(text, room, "%" PRIu32 " %s", block->tgid, name && *name ? name : "[unknown]");
	free(name);
}

/* Of a block in the kernel. */
static void name_origin(const struct groups *g, const struct live_block *block, char *text,
			size_t room)
{
	const struct origin *o = origins_get(&g->export->leaks->origins, block->origin);
	const char *raw = o ? o->flags : "";
	char *name;

	if (o && g->key == GROUP_PROCESS)
		raw = o->tgid ? o->process : "interrupts";
	else if (o && g->key == GROUP_CGROUP)
		raw = o->cgroup;
	else if (o && g->key == GROUP_CACHE)
		raw = o->cache;
	name = text_escape(raw);
	if (o && g->key == GROUP_PROCESS && o->tgid)
		snprintf(text, room, "%" PRIu32 " %s", o->tgid, name ? name : "");
	else if (o && (g->key == GROUP_ORDER || (g->key == GROUP_CACHE && !*raw)))
		snprintf(text, room, "pages of order %" PRIu32, o->order);
	else
		snprintf(text, room, "%s", name && *name ? name : "[unknown]");
	if (o && g->key == GROUP_ORDER && *o->cache)
		snprintf(text, room, "no pages");
	free(name);
}

static void add_block(void *arg, const struct live_block *block)
{
	struct groups *g = arg;
	struct group *group;
	uint64_t order = 0;
	char text[512];

	if (g->err || !g->shown[block->stack])
		return;
	if (g->key == GROUP_SIZE)
		order = name_size(block, text, sizeof(text));
	else if (g->key == GROUP_PROCESS && !g->export->meta->of_kernel)
		name_process(g, block, text, sizeof(text));
	else if (g->key >= GROUP_PROCESS)
		name_origin(g, block, text, sizeof(text));
	else
		order = name_age(g->export->leaks->chosen.end_ns, block, text, sizeof(text));
	group = group_of(g, text);
	if (!group) {
		g->err = -ENOMEM;
		return;
	}
	group->order = order;
	live_amount_add(&group->own, sampling_amount(block));
}

/* The heaviest first. */
static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group *x = a, *y = b;
	const struct groups *g = arg;
	char *const *text = g->names->all;

	if (x->own.bytes != y->own.bytes)
		return x->own.bytes > y->own.bytes ? -1 : 1;
	if (x->with_callees.bytes != y->with_callees.bytes)
		return x->with_callees.bytes > y->with_callees.bytes ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return strcmp(text[x->name], text[y->name]);
}

/* Sizes and ages, which have an order of their own. */
static int compare_order(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

static int collect_groups(struct groups *g)
{
	const struct view *view = g->export->view;
	size_t nr = g->export->leaks->stacks->nr;
	int err = strings_new(&g->names);

	g->shown = calloc(nr + 1, sizeof(*g->shown));
	if (!g->shown)
		return -ENOMEM;
	for (size_t i = 0; i < view->nr && !err; i++) {
		g->shown[view->chosen[i]] = true;
		if (is_by_stack(g->key))
			err = add_group_stack(g, i);
	}
	if (err || is_by_stack(g->key))
		return err;
	chosen_each(&g->export->leaks->chosen, g->export->leaks->live, add_block, g);
	return g->err;
}

static void put_groups_text(FILE *out, const struct groups *g, size_t nr)
{
	char bytes[SIZE_TEXT_MAX], blocks[TEXT_NUMBER_MAX];
	bool stacks = is_by_stack(g->key), color = g->export->view->opts.color;
	uint64_t heavy = report_data_selected(g->export).bytes / 10 + 1; /* as of a tree */

	if (!nr) {
		print_no_blocks(out, g->export);
		return;
	}
	if (stacks)
		fprintf(out, "%25s%24s\n%12s%12s", "by itself", "and what it calls", size_title(),
			"blocks");
	fprintf(out, "%12s%12s  %s\n", size_title(), "blocks", names[g->key]);
	for (size_t i = 0; i < nr; i++) {
		const struct group *group = &g->all[i];

		fprintf(out, "%s%12s%s%12s",
			color_of(color, group->own.bytes >= heavy ? COLOR_HEAVY : COLOR_NONE),
			size_cell(bytes, group->own.bytes), color_of(color, COLOR_END),
			text_number(blocks, group->own.blocks));
		if (stacks)
			fprintf(out, "%12s%12s", size_cell(bytes, group->with_callees.bytes),
				text_number(blocks, group->with_callees.blocks));
		fprintf(out, "  %s", color_of(color, COLOR_NAME));
		name_print(out, g->names->all[group->name],
			   name_room(g->export->view->opts.columns, stacks ? 50 : 26));
		fprintf(out, "%s\n", color_of(color, COLOR_END));
	}
}

static void put_groups_csv(FILE *out, const struct groups *g, size_t nr)
{
	bool stacks = is_by_stack(g->key);

	fprintf(out, "outstanding_bytes,outstanding_blocks%s,%s\r\n",
		stacks ? ",bytes_with_callees,blocks_with_callees" : "", names[g->key]);
	for (size_t i = 0; i < nr; i++) {
		const struct group *group = &g->all[i];

		fprintf(out, "%" PRIu64 ",%" PRIu64 ",", group->own.bytes, group->own.blocks);
		if (stacks)
			fprintf(out, "%" PRIu64 ",%" PRIu64 ",", group->with_callees.bytes,
				group->with_callees.blocks);
		csv_text(out, g->names->all[group->name]);
		fputs("\r\n", out);
	}
}

/* Bring the groups in the order in which they are printed, those that are left out behind.  Returns
 * how many are shown. */
static size_t rank_groups(struct groups *g, size_t nr, size_t top)
{
	size_t shown = top && top < nr ? top : nr;

	if (nr)
		qsort_r(g->all, nr, sizeof(*g->all), compare_groups, g);
	if (shown && (g->key == GROUP_SIZE || g->key == GROUP_AGE))
		qsort(g->all, shown, sizeof(*g->all), compare_order);
	return shown;
}

/* What is outstanding of the rows that are not shown. */
static struct live_amount rest_of(const struct groups *g, size_t shown, size_t nr)
{
	struct live_amount rest = {0};

	for (size_t i = shown; i < nr; i++)
		live_amount_add(&rest, g->all[i].own);
	return rest;
}

/* Of a function that has the name of others, the module is a member of its own. */
static void put_json_key(struct json *json, const struct groups *g, const struct group *group)
{
	const char *name = g->names->all[group->name];

	json_text(json, names[g->key], group->told ? group->told->function : name);
	if (group->told)
		json_text(json, "module", group->told->module);
}

static int put_groups_json(FILE *out, const struct groups *g, size_t shown, size_t nr)
{
	struct json json = {.out = out};
	int err = json_begin(&json, g->export, "mleak-groups", SCHEMA_VERSION);

	json_text(&json, "by", names[g->key]);
	json_open(&json, "groups", '[');
	for (size_t i = 0; i < shown; i++) {
		json_open(&json, NULL, '{');
		put_json_key(&json, g, &g->all[i]);
		json_amount(&json, "outstanding", g->all[i].own);
		if (is_by_stack(g->key))
			json_amount(&json, "with_callees", g->all[i].with_callees);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_left_out(&json, "groups", nr - shown, rest_of(g, shown, nr));
	json_end(&json, g->export);
	return err;
}

static void put_rest(FILE *out, const struct groups *g, size_t shown, size_t nr)
{
	if (nr > shown)
		fputc('\n', out);
	(g->export->view->opts.rows ? print_limited : print_left_out)(
		out, nr - shown, "lighter row", "lighter rows", rest_of(g, shown, nr));
}

static int put_groups(FILE *out, const struct groups *g, const struct table_opts *opts,
		      size_t shown, size_t nr)
{
	switch (opts->format) {
	case TABLE_JSON:
		return put_groups_json(out, g, shown, nr);
	case TABLE_CSV:
		put_groups_csv(out, g, shown);
		return 0;
	default:
		put_groups_text(out, g, shown);
		put_rest(out, g, shown, nr);
		return 0;
	}
}

int print_groups(FILE *out, const struct report_data *export, enum group_key key,
		 const struct table_opts *opts)
{
	struct groups g = {.export = export, .key = key};
	size_t rows = opts->format == TABLE_TEXT ? export->view->opts.rows : 0;
	size_t nr, shown;
	int err;

	if (group_is_threads(key))
		return print_threads(out, export, key == GROUP_THREAD_NAME, opts);
	err = collect_groups(&g);
	nr = err ? 0 : g.names->nr - 1;
	shown = rank_groups(&g, nr, opts->top ? opts->top : rows);
	if (!err)
		err = put_groups(out, &g, opts, shown, nr);
	free(g.all);
	free(g.shown);
	strings_free(g.names);
	return err;
}
