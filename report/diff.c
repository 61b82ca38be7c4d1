/* diff.c - see diff.h */
#include "report/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/array.h"
#include "report/color.h"
#include "report/csv.h"
#include "report/print_folded.h"
#include "report/print_json.h"
#include "report/print_place.h"
#include "report/print_shown.h"
#include "report/strings.h"
#include "report/text.h"

enum { BEFORE, AFTER, NR_SIDES };

struct row {
	struct live_amount amount[NR_SIDES];
	uint32_t key; /* number of the string */
	int side;     /* where there is such a stack, */
	size_t i;     /* and which */
};

struct diff {
	const struct export *side[NR_SIDES];
	struct strings *keys; /* "" is none */
	struct row *rows;     /* by number of key, less one */
	size_t nr, room;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* What makes a frame the same in both traces, as text behind @out.  With lines it sorts calls in
 * one function by these; without, a frame whose line has moved is still the same. */
static void put_key(FILE *out, const struct place *place, bool lines)
{
	fprintf(out, "%s\n%s\n", base_name(place->module), place->function);
	if (lines)
		fprintf(out, "%s\n%010" PRIu32 "\n", base_name(place->file), place->line);
}

/* The key of stack @i, outermost frame first, to be freed; NULL: no memory. */
static char *make_key(const struct export *export, size_t i, bool lines)
{
	size_t nr, len;
	const uint32_t *path = places_path(export->places, i, &nr);
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	while (nr)
		put_key(out, places_get(export->places, path[--nr]), lines);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int add_stack(struct diff *diff, int side, size_t i)
{
	const struct stack *stack = view_stack(diff->side[side]->view, i);
	char *key = make_key(diff->side[side], i, true);
	struct row *rows;
	uint32_t number;
	int err = key ? strings_intern(diff->keys, key, &number) : -ENOMEM;

	free(key);
	if (err)
		return err;
	if (number > diff->nr) {
		rows = array_grow(diff->rows, &diff->room, number, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		diff->rows = rows;
		rows[diff->nr++] = (struct row){.key = number, .side = side, .i = i};
	}
	diff->rows[number - 1].amount[side].blocks += stack->blocks;
	diff->rows[number - 1].amount[side].bytes += stack->bytes;
	return 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The largest change first; then what is more. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	char *const *keys = strings_all(((const struct diff *)arg)->keys);
	uint64_t by_x = distance(x->amount[AFTER].bytes, x->amount[BEFORE].bytes);
	uint64_t by_y = distance(y->amount[AFTER].bytes, y->amount[BEFORE].bytes);

	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	if (x->amount[AFTER].bytes != y->amount[AFTER].bytes)
		return x->amount[AFTER].bytes > y->amount[AFTER].bytes ? -1 : 1;
	return strcmp(keys[x->key], keys[y->key]);
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	char *const *keys = strings_all(((const struct diff *)arg)->keys);

	return strcmp(keys[((const struct row *)a)->key], keys[((const struct row *)b)->key]);
}

static const char *verdict(const struct row *row)
{
	const struct live_amount *before = &row->amount[BEFORE], *after = &row->amount[AFTER];

	if (!before->blocks)
		return "new";
	if (!after->blocks)
		return "gone";
	if (after->bytes != before->bytes)
		return after->bytes > before->bytes ? "grown" : "shrunk";
	return after->blocks == before->blocks	? "same"
	       : after->blocks > before->blocks ? "grown"
						: "shrunk";
}

/* A number with its sign, and commas. */
static const char *signed_text(char buf[TEXT_NUMBER_MAX + 1], uint64_t before, uint64_t after)
{
	buf[0] = after < before ? '-' : '+';
	text_number(buf + 1, distance(after, before));
	return buf;
}

static void put_sums(FILE *out, const char *what, const struct export *export)
{
	struct live_amount amount = export_selected(export);
	char bytes[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX];

	fprintf(out, "%-7s%15s bytes%12s %-6s outstanding%12" PRIu64 " events lost  ", what,
		text_number(bytes, amount.bytes), text_number(blocks, amount.blocks),
		text_blocks(amount.blocks), export_lost(export));
	text_print(out, export->path);
	fputc('\n', out);
}

static void put_row(FILE *out, const struct diff *diff, const struct row *row)
{
	const struct places *places = diff->side[row->side]->places;
	char bytes[TEXT_NUMBER_MAX + 1], blocks[TEXT_NUMBER_MAX + 1];
	char before[TEXT_NUMBER_MAX], after[TEXT_NUMBER_MAX];
	size_t nr;
	const uint32_t *path = places_path(places, row->i, &nr);
	bool color = view_options(diff->side[row->side]->view)->color;
	bool is_more = row->amount[AFTER].bytes > row->amount[BEFORE].bytes;

	fprintf(out, "%s%-7s%15s%12s%15s%15s%s\n",
		color_of(color, is_more ? COLOR_HEAVY : COLOR_NONE), verdict(row),
		signed_text(bytes, row->amount[BEFORE].bytes, row->amount[AFTER].bytes),
		signed_text(blocks, row->amount[BEFORE].blocks, row->amount[AFTER].blocks),
		text_number(before, row->amount[BEFORE].bytes),
		text_number(after, row->amount[AFTER].bytes), color_of(color, COLOR_END));
	for (size_t at = 0; at < nr; at++)
		print_place(out, places_get(places, path[at]), color);
}

static int put_text(FILE *out, const struct diff *diff, size_t top)
{
	size_t same = 0, shown = 0, left_out = 0;
	int err;

	put_sums(out, "before", diff->side[BEFORE]);
	put_sums(out, "after", diff->side[AFTER]);
	err = print_shown(out, diff->side[AFTER]);
	fprintf(out, "\n%-7s%15s%12s%15s%15s\n", "", "bytes", "blocks", "before", "after");
	for (size_t i = 0; i < diff->nr; i++) {
		const struct row *row = &diff->rows[i];

		if (!strcmp(verdict(row), "same")) {
			same++;
		} else if (top && shown == top) {
			left_out++;
		} else {
			put_row(out, diff, row);
			shown++;
		}
	}
	fprintf(out, "\n%zu stacks differ, %zu of them are not shown; %zu are the same\n",
		shown + left_out, left_out, same);
	return err;
}

/* FILE:LINE, or where that is not known the module, of each frame of stack @i: two calls in one
 * function have the same names. */
static int put_csv_places(FILE *out, const struct places *places, size_t i)
{
	size_t nr, len;
	const uint32_t *path = places_path(places, i, &nr);
	char *text = NULL;
	FILE *all = open_memstream(&text, &len);

	while (all && nr) {
		const struct place *place = places_get(places, path[--nr]);

		if (place->file[0])
			fprintf(all, "%s:%" PRIu32 "%s", place->file, place->line, nr ? ";" : "");
		else
			fprintf(all, "%s%s", base_name(place->module), nr ? ";" : "");
	}
	if (!all || fclose(all)) {
		free(text);
		return -ENOMEM;
	}
	csv_text(out, text);
	free(text);
	return 0;
}

static int put_csv(FILE *out, const struct diff *diff, size_t top)
{
	fputs("change,bytes_before,bytes_after,blocks_before,blocks_after,stack,places\r\n", out);
	for (size_t i = 0; i < diff->nr && (!top || i < top); i++) {
		const struct row *row = &diff->rows[i];

		fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", verdict(row),
			row->amount[BEFORE].bytes, row->amount[AFTER].bytes,
			row->amount[BEFORE].blocks, row->amount[AFTER].blocks);
		csv_path(out, diff->side[row->side]->places, row->i);
		fputc(',', out);
		if (put_csv_places(out, diff->side[row->side]->places, row->i))
			return -ENOMEM;
		fputs("\r\n", out);
	}
	return 0;
}

static void put_side(struct json *json, const char *key, const struct export *export)
{
	json_open(json, key, '{');
	json_text(json, "path", export->path);
	json_amount(json, "outstanding", export_selected(export));
	json_number(json, "lost_events", export_lost(export));
	json_close(json, '}');
}

static void put_json_row(struct json *json, const struct diff *diff, const struct row *row)
{
	size_t nr;
	const uint32_t *path = places_path(diff->side[row->side]->places, row->i, &nr);

	json_open(json, NULL, '{');
	json_text(json, "change", verdict(row));
	json_amount(json, "before", row->amount[BEFORE]);
	json_amount(json, "after", row->amount[AFTER]);
	json_open(json, "frames", '[');
	for (size_t at = 0; at < nr; at++)
		json_place(json, places_get(diff->side[row->side]->places, path[at]));
	json_close(json, ']');
	json_close(json, '}');
}

static int put_json(FILE *out, const struct diff *diff, size_t top)
{
	struct json json = {.out = out};
	int err;

	json_open(&json, NULL, '{');
	json_text(&json, "schema", "mleak-diff");
	json_number(&json, "version", 1);
	json_text(&json, "mleak", MLEAK_VERSION);
	put_side(&json, "before", diff->side[BEFORE]);
	put_side(&json, "after", diff->side[AFTER]);
	err = shown_json(&json, diff->side[AFTER]);
	json_open(&json, "stacks", '[');
	for (size_t i = 0; i < diff->nr && (!top || i < top); i++)
		put_json_row(&json, diff, &diff->rows[i]);
	json_close(&json, ']');
	json_number(&json, "left_out", top && top < diff->nr ? diff->nr - top : 0);
	json_close(&json, '}');
	return err;
}

struct folded {
	char *stack;
	uint64_t bytes[NR_SIDES];
};

static int compare_folded(const void *a, const void *b)
{
	return strcmp(((const struct folded *)a)->stack, ((const struct folded *)b)->stack);
}

/* A frame of a report's folded stacks, to be freed; NULL: no memory. */
static char *folded_place(const struct place *place)
{
	char *name, *frame = NULL;

	if (asprintf(&name, "%s%s", place->function, place->inlined ? " (inlined)" : "") < 0)
		return NULL;
	frame = folded_frame(name);
	free(name);
	return frame;
}

/* The frames of @row, "COMM;FRAME;FRAME", to be freed; NULL: no memory. */
static char *folded_stack(const struct diff *diff, const struct row *row)
{
	const struct places *places = diff->side[row->side]->places;
	char *text = NULL, *frame = folded_frame(leaks_comm(diff->side[AFTER]->leaks));
	size_t nr, len;
	const uint32_t *path = places_path(places, row->i, &nr);
	FILE *out = open_memstream(&text, &len);
	bool whole = frame != NULL;

	if (out && frame)
		fputs(frame, out);
	while (out && frame && nr) {
		free(frame);
		frame = folded_place(places_get(places, path[--nr]));
		whole = frame != NULL;
		if (frame)
			fprintf(out, ";%s", frame);
	}
	free(frame);
	if (out && (fclose(out) || !whole)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* @lines are sorted; of stacks that are the same, as only lines tell them apart, one is printed. */
static void put_folded_lines(FILE *out, const struct folded *lines, size_t nr)
{
	for (size_t i = 0; i < nr;) {
		uint64_t before = 0, after = 0;
		size_t first = i;

		for (; i < nr && !strcmp(lines[first].stack, lines[i].stack); i++) {
			before += lines[i].bytes[BEFORE];
			after += lines[i].bytes[AFTER];
		}
		if (before || after)
			fprintf(out, "%s %" PRIu64 " %" PRIu64 "\n", lines[first].stack, before,
				after);
	}
}

static int put_folded(FILE *out, const struct diff *diff, size_t top)
{
	size_t nr = top && top < diff->nr ? top : diff->nr, made = 0;
	struct folded *lines = calloc(nr + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (; !err && made < nr; made++) {
		const struct row *row = &diff->rows[made];

		lines[made] =
			(struct folded){folded_stack(diff, row),
					{row->amount[BEFORE].bytes, row->amount[AFTER].bytes}};
		if (!lines[made].stack) {
			err = -ENOMEM;
			break;
		}
	}
	if (!err && made) {
		qsort(lines, made, sizeof(*lines), compare_folded);
		put_folded_lines(out, lines, made);
	}
	while (made)
		free(lines[--made].stack);
	free(lines);
	return err;
}

static int collect(struct diff *diff)
{
	int err = strings_new(&diff->keys);

	for (int side = BEFORE; side <= AFTER && !err; side++)
		for (size_t i = 0; i < view_nr(diff->side[side]->view) && !err; i++)
			err = add_stack(diff, side, i);
	return err;
}

/* A stack that is on one side only. */
struct lone {
	uint32_t key; /* number of its key without lines */
	int side;
	size_t row;
};

static int compare_lone(const void *a, const void *b)
{
	const struct lone *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->side != y->side)
		return x->side - y->side;
	return (x->row > y->row) - (x->row < y->row);
}

/* The stacks that are on one side only, in @all, by their keys without lines.  Returns how many, or
 * -ENOMEM. */
static ssize_t find_lone(const struct diff *diff, struct strings *keys, struct lone *all)
{
	size_t nr = 0;

	for (size_t i = 0; i < diff->nr; i++) {
		const struct row *row = &diff->rows[i];
		char *key;
		int err;

		if (!row->amount[BEFORE].blocks == !row->amount[AFTER].blocks)
			continue;
		key = make_key(diff->side[row->side], row->i, false);
		err = key ? strings_intern(keys, key, &all[nr].key) : -ENOMEM;
		free(key);
		if (err)
			return err;
		all[nr].side = row->amount[AFTER].blocks ? AFTER : BEFORE;
		all[nr++].row = i;
	}
	qsort(all, nr, sizeof(*all), compare_lone);
	return (ssize_t)nr;
}

/* Make one row of each two of @all whose keys are the same, the first with the first and so on. */
static void pair_lone(struct diff *diff, const struct lone *all, size_t nr)
{
	size_t before = 0, to = 0;

	for (size_t after = 0; after < nr; after++) {
		if (all[after].side != AFTER)
			continue;
		while (before < after &&
		       (all[before].key != all[after].key || all[before].side != BEFORE))
			before++;
		if (before == after)
			continue;
		diff->rows[all[after].row].amount[BEFORE] =
			diff->rows[all[before].row].amount[BEFORE];
		diff->rows[all[before++].row].key = 0;
	}
	for (size_t i = 0; i < diff->nr; i++)
		if (diff->rows[i].key)
			diff->rows[to++] = diff->rows[i];
	diff->nr = to;
}

/* A rebuilt program has many of its lines elsewhere: what is left over is matched without them. */
static int match_without_lines(struct diff *diff)
{
	struct strings *keys = NULL;
	struct lone *all = calloc(diff->nr + 1, sizeof(*all));
	ssize_t nr = all ? strings_new(&keys) : -ENOMEM;

	if (!nr && diff->nr) {
		qsort_r(diff->rows, diff->nr, sizeof(*diff->rows), compare_keys, diff);
		nr = find_lone(diff, keys, all);
	}
	if (nr > 0)
		pair_lone(diff, all, (size_t)nr);
	free(all);
	strings_free(keys);
	return nr < 0 ? (int)nr : 0;
}

/* What is more in @after than in @before, of the stacks of which there is more. */
static struct live_amount sum_of_what_came(const struct diff *diff)
{
	struct live_amount came = {0};

	for (size_t i = 0; i < diff->nr; i++) {
		const struct live_amount *amount = diff->rows[i].amount;

		if (amount[AFTER].bytes > amount[BEFORE].bytes)
			came.bytes += amount[AFTER].bytes - amount[BEFORE].bytes;
		if (amount[AFTER].blocks > amount[BEFORE].blocks)
			came.blocks += amount[AFTER].blocks - amount[BEFORE].blocks;
	}
	return came;
}

static int put(FILE *out, const struct diff *diff, enum diff_format format, size_t top)
{
	switch (format) {
	case DIFF_FOLDED:
		return put_folded(out, diff, top);
	case DIFF_CSV:
		return put_csv(out, diff, top);
	case DIFF_JSON:
		return put_json(out, diff, top);
	default:
		return put_text(out, diff, top);
	}
}

int print_diff(FILE *out, const struct export *before, const struct export *after,
	       const struct diff_opts *opts, struct live_amount *came)
{
	struct diff diff = {.side = {before, after}};
	int err = collect(&diff);

	if (!err)
		err = match_without_lines(&diff);
	if (!err && diff.nr)
		qsort_r(diff.rows, diff.nr, sizeof(*diff.rows), compare, &diff);
	*came = sum_of_what_came(&diff);
	if (!err)
		err = put(out, &diff, opts->format, opts->top);
	free(diff.rows);
	strings_free(diff.keys);
	return err;
}
