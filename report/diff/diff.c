/* diff.c - see diff.h */
#include "report/diff/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/strings.h"
#include "report/base/text.h"
#include "report/context/growth_rows.h"

#define SAME_RATE 0.1 /* share by which rates may differ */

/* What makes a frame the same in both traces, as text behind @out.  With lines it sorts calls in
 * one function by these; without, a frame whose line has moved is still the same. */
static void put_key(FILE *out, const struct place *place, bool lines)
{
	fprintf(out, "%s\n%s\n", text_file_name(place->module), place->function);
	if (lines)
		fprintf(out, "%s\n%010" PRIu32 "\n", text_file_name(place->file), place->line);
}

/* The key of stack @i, outermost frame first, to be freed; NULL: no memory. */
static char *make_key(const struct report_data *export, size_t i, bool lines)
{
	size_t nr, len;
	const uint32_t *path = places_path(export->places, i, &nr);
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	while (nr)
		put_key(out, &export->places->all[path[--nr]], lines);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* @rate is 0 where it does not count. */
static int add_diff_stack(struct diff *diff, enum diff_side side, size_t i, double rate)
{
	const struct stack *stack = view_stack(diff->side[side]->view, i);
	char *key = make_key(diff->side[side], i, true);
	struct diff_row row = {.side = side, .i = i};
	int err = key ? strings_intern(diff->keys, key, &row.key) : -ENOMEM;

	free(key);
	if (!err && row.key > diff->nr)
		err = array_append(&diff->rows, &diff->nr, &diff->room, &row, sizeof(row));
	if (err)
		return err;
	live_amount_add(&diff->rows[row.key - 1].amount[side], stack_outstanding(stack));
	diff->rows[row.key - 1].rate[side] += rate;
	return 0;
}

/* Only what looks like a leak grows: of caches and working sets a rate is chance. */
static double rate_of(const struct growth_row *row)
{
	bool grows = row->shape == SHAPE_GROWING || row->shape == SHAPE_LATE ||
		     row->shape == SHAPE_UNEVEN;

	return grows && row->per_minute > 0 ? row->per_minute : 0;
}

static int add_diff_side(struct diff *diff, enum diff_side side)
{
	const struct report_data *export = diff->side[side];
	struct growth_rows rows = {0};
	int err = 0;

	if (!diff->rates) {
		for (size_t i = 0; i < export->view->nr && !err; i++)
			err = add_diff_stack(diff, side, i, 0);
		return err;
	}
	err = growth_rows_init(&rows, export, export->growth);
	for (size_t i = 0; i < rows.nr && !err; i++)
		err = add_diff_stack(diff, side, rows.all[i].i, rate_of(&rows.all[i]));
	growth_rows_release(&rows);
	return err;
}

uint64_t diff_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The largest change first; then what is more. */
static int compare_changes(const void *a, const void *b, void *arg)
{
	const struct diff_row *x = a, *y = b;
	char *const *keys = (((const struct diff *)arg)->keys)->all;
	uint64_t by_x = diff_distance(x->amount[DIFF_AFTER].bytes, x->amount[DIFF_BEFORE].bytes);
	uint64_t by_y = diff_distance(y->amount[DIFF_AFTER].bytes, y->amount[DIFF_BEFORE].bytes);

	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	if (x->amount[DIFF_AFTER].bytes != y->amount[DIFF_AFTER].bytes)
		return x->amount[DIFF_AFTER].bytes > y->amount[DIFF_AFTER].bytes ? -1 : 1;
	return strcmp(keys[x->key], keys[y->key]);
}

/* What grows most is first. */
static int compare_rates(const void *a, const void *b, void *arg)
{
	const struct diff_row *x = a, *y = b;
	double of_x = fmax(x->rate[DIFF_BEFORE], x->rate[DIFF_AFTER]);
	double of_y = fmax(y->rate[DIFF_BEFORE], y->rate[DIFF_AFTER]);

	if (of_x != of_y)
		return of_x > of_y ? -1 : 1;
	return compare_changes(a, b, arg);
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	char *const *keys = (((const struct diff *)arg)->keys)->all;

	return strcmp(keys[((const struct diff_row *)a)->key],
		      keys[((const struct diff_row *)b)->key]);
}

static const char *rate_verdict(const struct diff_row *row)
{
	double before = row->rate[DIFF_BEFORE], after = row->rate[DIFF_AFTER];

	if (before <= 0 || after <= 0)
		return after > 0 ? "new" : before > 0 ? "gone" : "same";
	if (fabs(after - before) < SAME_RATE * fmax(before, after))
		return "same";
	return after > before ? "faster" : "slower";
}

const char *diff_verdict(const struct diff *diff, const struct diff_row *row)
{
	const struct live_amount *before = &row->amount[DIFF_BEFORE],
				 *after = &row->amount[DIFF_AFTER];

	if (diff->rates)
		return rate_verdict(row);
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

static int collect_stacks(struct diff *diff)
{
	int err = strings_new(&diff->keys);

	for (enum diff_side side = DIFF_BEFORE; side < DIFF_SIDES && !err; side++)
		err = add_diff_side(diff, side);
	return err;
}

/* A stack that is on one side only. */
struct lone {
	uint32_t key; /* number of its key without lines */
	enum diff_side side;
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
		const struct diff_row *row = &diff->rows[i];
		char *key;
		int err;

		if (!row->amount[DIFF_BEFORE].blocks == !row->amount[DIFF_AFTER].blocks)
			continue;
		key = make_key(diff->side[row->side], row->i, false);
		err = key ? strings_intern(keys, key, &all[nr].key) : -ENOMEM;
		free(key);
		if (err)
			return err;
		all[nr].side = row->amount[DIFF_AFTER].blocks ? DIFF_AFTER : DIFF_BEFORE;
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
		if (all[after].side != DIFF_AFTER)
			continue;
		while (before < after &&
		       (all[before].key != all[after].key || all[before].side != DIFF_BEFORE))
			before++;
		if (before == after)
			continue;
		diff->rows[all[after].row].amount[DIFF_BEFORE] =
			diff->rows[all[before].row].amount[DIFF_BEFORE];
		diff->rows[all[after].row].rate[DIFF_BEFORE] =
			diff->rows[all[before].row].rate[DIFF_BEFORE];
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

static bool has_enough(const struct live_amount *amount, const struct stack_filter_opts *sieve)
{
	return amount->bytes >= sieve->min_bytes && amount->blocks >= sieve->min_blocks;
}

/* Leave out the stacks of which both sides have too little. */
static void sift_rows(struct diff *diff)
{
	const struct stack_filter_opts *sieve = &diff->side[DIFF_AFTER]->view->opts.sieve;
	size_t to = 0;

	for (size_t i = 0; i < diff->nr; i++)
		if (has_enough(&diff->rows[i].amount[DIFF_BEFORE], sieve) ||
		    has_enough(&diff->rows[i].amount[DIFF_AFTER], sieve))
			diff->rows[to++] = diff->rows[i];
	diff->nr = to;
}

int diff_new(struct diff **out, const struct report_data *before, const struct report_data *after)
{
	struct diff *diff = calloc(1, sizeof(*diff));
	int err;

	*out = NULL;
	if (!diff)
		return -ENOMEM;
	diff->side[DIFF_BEFORE] = before;
	diff->side[DIFF_AFTER] = after;
	diff->rates = before->growth && after->growth && diff_one_process(before, after);
	err = collect_stacks(diff);
	if (!err)
		err = match_without_lines(diff);
	if (err) {
		diff_free(diff);
		return err;
	}
	sift_rows(diff);
	if (diff->nr)
		qsort_r(diff->rows, diff->nr, sizeof(*diff->rows),
			diff->rates ? compare_rates : compare_changes, diff);
	*out = diff;
	return 0;
}

struct live_amount diff_sum(const struct diff *diff, enum diff_side side)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < diff->nr; i++)
		live_amount_add(&sum, diff->rows[i].amount[side]);
	return sum;
}

/* See diff_came(). */
static struct live_amount came_by_rates(const struct diff *diff)
{
	double minutes = (double)report_data_duration(diff->side[DIFF_AFTER]) / 60e9, bytes = 0;

	for (size_t i = 0; i < diff->nr; i++) {
		const double *rate = diff->rows[i].rate;
		const char *verdict = rate_verdict(&diff->rows[i]);

		if (!strcmp(verdict, "new") || !strcmp(verdict, "faster"))
			bytes += (rate[DIFF_AFTER] - rate[DIFF_BEFORE]) * minutes;
	}
	return (struct live_amount){.bytes = (uint64_t)fmin(ceil(bytes), 1e18)};
}

struct live_amount diff_came(const struct diff *diff)
{
	struct live_amount came = {0};

	if (diff->rates)
		return came_by_rates(diff);
	for (size_t i = 0; i < diff->nr; i++) {
		const struct live_amount *amount = diff->rows[i].amount;

		if (amount[DIFF_AFTER].bytes > amount[DIFF_BEFORE].bytes)
			came.bytes += amount[DIFF_AFTER].bytes - amount[DIFF_BEFORE].bytes;
		if (amount[DIFF_AFTER].blocks > amount[DIFF_BEFORE].blocks)
			came.blocks += amount[DIFF_AFTER].blocks - amount[DIFF_BEFORE].blocks;
	}
	return came;
}

int diff_labels(const struct diff *diff, struct labels **labels, uint32_t *numbers[DIFF_SIDES],
		bool inlined)
{
	const struct places *const places[] = {diff->side[DIFF_BEFORE]->places,
					       diff->side[DIFF_AFTER]->places};
	int err = labels_new(labels);

	return err ? err : place_labels_both(numbers, *labels, places, inlined);
}

size_t diff_path(const struct diff *diff, const struct diff_row *row,
		 uint32_t *const numbers[DIFF_SIDES], uint32_t path[VIEW_MAX_PATH])
{
	return place_labels_path(diff->side[row->side]->places, row->i, numbers[row->side], path);
}

void diff_free(struct diff *diff)
{
	if (!diff)
		return;
	free(diff->rows);
	strings_free(diff->keys);
	free(diff);
}
