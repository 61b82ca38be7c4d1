/* print_diff_folded.c - a difference as difffolded.pl makes it: STACK DIFF_BEFORE DIFF_AFTER */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff/print_diff.h"
#include "report/machine/print_folded.h"
#include "report/view/places.h"

struct folded {
	char *stack;
	uint64_t bytes[DIFF_SIDES];
};

static int compare_folded(const void *a, const void *b)
{
	return strcmp(((const struct folded *)a)->stack, ((const struct folded *)b)->stack);
}

/* What the frames of both sides are made of. */
struct source {
	struct labels *labels;
	uint32_t *numbers[DIFF_SIDES]; /* of the labels of all places */
	struct folded_frames *frames;
	char *root;
};

/* Read the first @nr rows of @diff.  @source is to be released in any case. */
static int open_source(struct source *source, const struct diff *diff, size_t nr)
{
	uint32_t path[VIEW_MAX_PATH];
	int err;

	source->root = folded_frame(diff->side[DIFF_AFTER]->leaks->comm);
	err = source->root ? diff_labels(diff, &source->labels, source->numbers, true) : -ENOMEM;
	if (!err)
		err = folded_frames_new(&source->frames, source->labels);
	if (err || !folded_frames_wants_paths(source->frames))
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		err = folded_frames_add(source->frames, path,
					diff_path(diff, &diff->rows[i], source->numbers, path));
	return err ? err : folded_frames_finish(source->frames);
}

static void close_source(struct source *source)
{
	folded_frames_free(source->frames);
	for (int side = 0; side < DIFF_SIDES; side++)
		free(source->numbers[side]);
	labels_free(source->labels);
	free(source->root);
}

/* @lines are sorted; of stacks that are the same, as only lines distinguish them, one is
 * printed. */
static void put_folded_lines(FILE *out, const struct folded *lines, size_t nr)
{
	for (size_t i = 0; i < nr;) {
		uint64_t before = 0, after = 0;
		size_t first = i;

		for (; i < nr && !strcmp(lines[first].stack, lines[i].stack); i++) {
			before += lines[i].bytes[DIFF_BEFORE];
			after += lines[i].bytes[DIFF_AFTER];
		}
		if (before || after)
			fprintf(out, "%s %" PRIu64 " %" PRIu64 "\n", lines[first].stack, before,
				after);
	}
}

int print_diff_folded(FILE *out, const struct diff *diff, size_t top)
{
	size_t nr = top && top < diff->nr ? top : diff->nr, made = 0;
	struct folded *lines = calloc(nr + 1, sizeof(*lines));
	struct source source = {0};
	uint32_t path[VIEW_MAX_PATH];
	int err = lines ? open_source(&source, diff, nr) : -ENOMEM;

	for (; !err && made < nr; made++) {
		const struct diff_row *row = &diff->rows[made];

		lines[made] = (struct folded){
			folded_frames_stack(source.frames, source.root, path,
					    diff_path(diff, row, source.numbers, path)),
			{row->amount[DIFF_BEFORE].bytes, row->amount[DIFF_AFTER].bytes}};
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
	close_source(&source);
	return err;
}
