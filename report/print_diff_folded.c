/* print_diff_folded.c - a difference as difffolded.pl makes it: STACK DIFF_BEFORE DIFF_AFTER */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/print_diff.h"
#include "report/print_folded.h"

struct folded {
	char *stack;
	uint64_t bytes[DIFF_SIDES];
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
static char *folded_stack(const struct diff *diff, const struct diff_row *row)
{
	const struct places *places = diff_side(diff, row->side)->places;
	char *text = NULL, *frame = folded_frame(leaks_comm(diff_side(diff, DIFF_AFTER)->leaks));
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
	size_t nr = top && top < diff_nr(diff) ? top : diff_nr(diff), made = 0;
	struct folded *lines = calloc(nr + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (; !err && made < nr; made++) {
		const struct diff_row *row = diff_get(diff, made);

		lines[made] = (struct folded){
			folded_stack(diff, row),
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
	return err;
}
