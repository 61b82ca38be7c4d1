/* growth_rows.c - see growth_rows.h */
#include "report/context/growth_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/strings.h"
#include "report/name/short_name.h"

#define INNERMOST 3    /* functions that are the same in a group */
#define ERRORS	  1.96 /* standard errors around an estimate: 95 % */

/* The growth is that of so many samples as were allocated in its time.  Blocks of one stack are
 * much alike, so the error of their number is that of their bytes. */
static void set_interval(struct growth_row *row, uint64_t blocks)
{
	double n = (double)row->late_samples;
	double sampled = blocks ? (double)row->samples / (double)blocks : 1;
	double error = n > 0 ? ERRORS * sqrt(fmax(1 - sampled, 0) / n) : 1;
	double by = fabs(row->per_minute) * error;

	row->low = row->per_minute - by;
	row->high = row->per_minute + by;
}

/* The stacks of rows that are the same for a reader: what they have together. */
struct same_rows {
	uint32_t *numbers;
	size_t nr;
	const struct growth_row *first;
	double freed, allocated;
	enum growth_shape shape;
};

/* What the @same rows are. */
static enum growth_shape shape_of(const struct report_data *export, const struct growth *growth,
				  const struct same_rows *same)
{
	struct growth_stack stack =
		same->nr == 1 ? same->first->growth : growth_of(growth, same->numbers, same->nr);
	struct growth_span span = growth_span_of(growth, &export->leaks->chosen);
	enum growth_shape shape = growth_shape_of(
		&stack, &span, same->allocated > 0 ? same->freed / same->allocated : 0);
	bool grows = shape == SHAPE_GROWING || shape == SHAPE_LATE || shape == SHAPE_UNEVEN;

	return grows && !growth_shapes_tell(&export->leaks->chosen) ? SHAPE_UNCLEAR : shape;
}

/* The row of the view's stack @i, without its shape. */
static struct growth_row row_of(const struct report_data *export, const struct growth *growth,
				size_t i)
{
	const struct stack *stack = view_stack(export->view, i);
	struct growth_row row = {
		.i = i, .from = growth, .growth = growth_of(growth, &export->view->chosen[i], 1)};
	struct growth_span span = growth_span_of(growth, &export->leaks->chosen);
	struct sampling sampling = sampling_of(export->meta);

	row.per_minute = 60 * growth_rate_of(&row.growth, &span, growth->width_ns);
	if (stack->allocated.blocks)
		row.freed = (double)stack->freed.blocks / (double)stack->allocated.blocks;
	for (size_t at = 0; at < GROWTH_SLICES; at++) {
		row.samples += row.growth.kept[at];
		if (at >= span.first + span.nr / 2)
			row.late_samples += row.growth.kept[at];
	}
	row.low = row.high = row.per_minute;
	if (sampling_is_on(&sampling))
		set_interval(&row, stack->blocks);
	return row;
}

/* The same of stack @id, which is not in the view. */
static char *left_out_innermost(const struct growth_rows *rows, uint32_t id)
{
	char *line = NULL, *end;
	int err = rows->names ? stack_names_want(rows->names, id) : -ENOMEM;

	if (!err)
		err = stack_names_resolve(rows->names);
	if (!err)
		line = stack_names_line(rows->names, id, SIZE_MAX, 0);
	end = line;
	for (int nr = 0; end && nr < INNERMOST; nr++)
		end = strstr(nr ? end + 3 : end, " < ");
	if (end)
		*end = '\0';
	return line;
}

char *growth_rows_innermost(const struct growth_rows *rows, const struct view *view, size_t i,
			    bool whole)
{
	uint32_t path[VIEW_MAX_PATH];
	size_t nr, len;
	char *text = NULL;
	FILE *out;

	if (i >= view->nr)
		return left_out_innermost(rows, view_stack(view, i)->id);
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	nr = view_innermost(view, i, path, INNERMOST);
	for (size_t at = 0; at < nr; at++) {
		const char *name = view->labels->all[path[at]].name;

		fputs(at ? " < " : "", out);
		if (whole)
			fputs(name, out);
		else
			name_print(out, name, 0);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* What the rows of a group have in common, to be freed; NULL: no memory.  Of what neither grows nor
 * replaces anything, those that the view's top leaves out are in no group. */
static char *group_key(const struct growth_rows *rows, const struct report_data *export,
		       const struct growth_row *row)
{
	bool told = row->i < export->view->nr || row->shape <= SHAPE_UNCLEAR ||
		    row->shape == SHAPE_REPLACING;
	char *innermost = told ? growth_rows_innermost(rows, export->view, row->i, true) : NULL;
	char *text = NULL;
	int len = -1;

	/* of some no function is known */
	if (!told || (innermost && !*innermost))
		len = asprintf(&text, "%zu", row->i);
	else if (innermost)
		len = asprintf(&text, "%d %" PRIu32 " %s", row->shape,
			       view_stack(export->view, row->i)->process, innermost);
	free(innermost);
	return len < 0 ? NULL : text;
}

static int group_rows(struct growth_rows *rows, const struct report_data *export)
{
	struct strings *keys = NULL;
	double *sums = calloc(rows->nr + 1, sizeof(*sums));
	int err = sums ? strings_new(&keys) : -ENOMEM;

	for (size_t i = 0; i < rows->nr && !err; i++) {
		struct growth_row *row = &rows->all[i];
		char *key = group_key(rows, export, row);

		err = key ? strings_intern(keys, key, &row->group) : -ENOMEM;
		free(key);
		/* what has not grown stays in the order of the view */
		if (!err && row->shape <= SHAPE_UNCLEAR)
			sums[row->group - 1] += row->low;
		else if (!err && sums[row->group - 1] == 0)
			sums[row->group - 1] = -1 - (double)row->i;
	}
	for (size_t i = 0; i < rows->nr && !err; i++)
		rows->all[i].rank = sums[rows->all[i].group - 1];
	strings_free(keys);
	free(sums);
	return err;
}

/* Number the view's stacks, and those that its top leaves out: those of one process with the same
 * lines have one number, in @numbers.  Calls of one line may have several addresses, and stacks. */
static int find_same(const struct growth_rows *rows, const struct view *view, uint32_t *numbers)
{
	size_t nr = view->nr + view->left_out;
	uint32_t *order = view_as_met(view, nr);
	struct intern keys = {0};
	int err = order ? 0 : -ENOMEM;

	for (size_t at = 0; at < nr && !err; at++)
		err = stack_names_want(rows->names, view_stack(view, order[at])->id);
	if (!err)
		err = stack_names_resolve(rows->names);
	for (size_t at = 0; at < nr && !err; at++) {
		const struct stack *stack = view_stack(view, order[at]);
		uint32_t key[] = {0, stack->process};

		err = stack_names_number(rows->names, stack->id, &key[0]);
		if (!err && intern_pair(&keys, key, sizeof(key), &numbers[order[at]]) < 0)
			err = -ENOMEM;
	}
	intern_release(&keys);
	free(order);
	return err;
}

static void add_same(struct same_rows *same, const struct growth_row *row, const struct view *view)
{
	const struct stack *stack = view_stack(view, row->i);

	if (!same->nr)
		same->first = row;
	same->numbers[same->nr++] = view->chosen[row->i];
	same->freed += (double)stack->freed.blocks;
	same->allocated += (double)stack->allocated.blocks;
}

/* Rows that are the same for a reader have one shape: that of all they have. */
static int find_shapes(struct growth_rows *rows, const struct report_data *export,
		       const struct growth *growth)
{
	const struct view *view = export->view;
	size_t nr = view->nr + view->left_out, used = 0;
	uint32_t *keys = calloc(nr + 1, sizeof(*keys)), *numbers = NULL;
	struct same_rows *same = calloc(nr + 1, sizeof(*same));
	size_t *counts = calloc(nr + 1, sizeof(*counts));
	int err = -ENOMEM;

	numbers = calloc(nr + 1, sizeof(*numbers));
	if (keys && same && counts && numbers)
		err = find_same(rows, view, keys);
	for (size_t i = 0; i < rows->nr && !err; i++)
		counts[keys[rows->all[i].i]]++;
	for (size_t key = 0; key < nr && !err; key++) {
		same[key].numbers = numbers + used;
		used += counts[key];
	}
	for (size_t i = 0; i < rows->nr && !err; i++)
		add_same(&same[keys[rows->all[i].i]], &rows->all[i], view);
	for (size_t key = 0; key < nr && !err; key++)
		if (same[key].nr)
			same[key].shape = shape_of(export, growth, &same[key]);
	for (size_t i = 0; i < rows->nr && !err; i++)
		rows->all[i].shape = same[keys[rows->all[i].i]].shape;
	free(keys);
	free(same);
	free(counts);
	free(numbers);
	return err;
}

static int compare_rows(const void *a, const void *b)
{
	const struct growth_row *x = a, *y = b;

	if (x->shape != y->shape)
		return x->shape < y->shape ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->shape <= SHAPE_UNCLEAR && x->low != y->low)
		return x->low > y->low ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

int growth_rows_init(struct growth_rows *rows, const struct report_data *export,
		     const struct growth *growth)
{
	size_t nr = export->view->nr + export->view->left_out;
	int err;

	*rows = (struct growth_rows){calloc(nr + 1, sizeof(*rows->all)), 0, NULL};
	if (!rows->all)
		return -ENOMEM;
	err = stack_names_new(&rows->names, &export->view->source, &export->view->opts);
	/* blocks that are not in the trace's events have no times */
	for (size_t i = 0; i < nr && !err; i++)
		if (view_stack(export->view, i)->allocs)
			rows->all[rows->nr++] = row_of(export, growth, i);
	if (!err)
		err = find_shapes(rows, export, growth);
	if (!err)
		err = group_rows(rows, export);
	qsort(rows->all, rows->nr, sizeof(*rows->all), compare_rows);
	return err;
}

size_t growth_rows_in_group(const struct growth_rows *rows, size_t i)
{
	size_t nr = 1;

	while (i + nr < rows->nr && rows->all[i + nr].group == rows->all[i].group)
		nr++;
	return nr;
}

struct live_amount growth_rows_amount(const struct report_data *export,
				      const struct growth_row *rows, size_t nr)
{
	struct live_amount sum = {0};

	for (size_t i = 0; i < nr; i++)
		live_amount_add(&sum, stack_outstanding(view_stack(export->view, rows[i].i)));
	return sum;
}

struct growth_row growth_rows_sum(const struct report_data *export, const struct growth_row *rows,
				  size_t nr)
{
	struct growth_row sum = rows[0];
	struct sampling sampling = sampling_of(export->meta);
	double freed = 0, allocated = 0;
	uint32_t *numbers = calloc(nr, sizeof(*numbers));

	for (size_t i = 0; i < nr; i++) {
		const struct stack *stack = view_stack(export->view, rows[i].i);

		freed += (double)stack->freed.blocks;
		allocated += (double)stack->allocated.blocks;
		if (numbers)
			numbers[i] = export->view->chosen[rows[i].i];
		if (!i)
			continue;
		sum.per_minute += rows[i].per_minute;
		sum.samples += rows[i].samples;
		sum.late_samples += rows[i].late_samples;
	}
	/* without memory, its ages are those of the first */
	if (numbers)
		sum.growth = growth_of(rows[0].from, numbers, nr);
	free(numbers);
	sum.freed = allocated > 0 ? freed / allocated : 0;
	sum.low = sum.high = sum.per_minute;
	if (sampling_is_on(&sampling))
		set_interval(&sum, growth_rows_amount(export, rows, nr).blocks);
	return sum;
}

void growth_rows_release(struct growth_rows *rows)
{
	free(rows->all);
	stack_names_free(rows->names);
	*rows = (struct growth_rows){0};
}
