/* print_folded.c - see print_folded.h
 *
 * The format has no escapes and no specification.  What is kept to here is what flamegraph.pl,
 * inferno, speedscope, Perfetto and the Firefox Profiler all read alike: for one, flamegraph.pl
 * takes a number after a space at the end of the leaf for the first column of a differential
 * profile.
 */
#include "report/machine/print_folded.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/machine/folded_frames.h"

#define MAX_COUNT (((uint64_t)1 << 53) - 1) /* readers in JavaScript count in doubles */

struct line {
	char *text;
	uint64_t bytes;
};

/* If @frame ends in a space and a number (digits, or digits '.' digits), the place of the space. */
static char *space_before_number(char *frame)
{
	char *at = frame + strlen(frame);
	const char *end = at;

	while (at > frame && isdigit((unsigned char)at[-1]))
		at--;
	if (at > frame + 1 && at[-1] == '.' && isdigit((unsigned char)at[-2])) {
		at--;
		while (at > frame && isdigit((unsigned char)at[-1]))
			at--;
	}
	return at < end && at > frame && at[-1] == ' ' ? at - 1 : NULL;
}

char *folded_frame(const char *name)
{
	char *frame = text_escape(name);
	char *number, *bracketed;
	size_t len;

	if (!frame)
		return NULL;
	if (!*frame || !strcmp(frame, "-") || !strcmp(frame, "--")) {
		int err = asprintf(&bracketed, "[%s]", frame);

		free(frame);
		return err < 0 ? NULL : bracketed;
	}
	for (char *c = frame; *c; c++)
		if (*c == ';')
			*c = ':';
	len = strlen(frame);
	for (size_t i = 0; frame[i] == ' '; i++)
		frame[i] = '_';
	for (size_t i = len; i && frame[i - 1] == ' '; i--)
		frame[i - 1] = '_';
	/* only a line's first frame may not begin so, but a name is to look the same everywhere */
	if (frame[0] == '#')
		frame[0] = '_';
	number = space_before_number(frame);
	if (number)
		*number = '_';
	return frame;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Sort @lines, and make one of those with equal stacks.  Returns how many are left. */
static size_t merge(struct line *lines, size_t nr)
{
	size_t to = 0;

	qsort(lines, nr, sizeof(*lines), compare);
	for (size_t i = 0; i < nr; i++) {
		if (to && !compare(&lines[to - 1], &lines[i])) {
			uint64_t *sum = &lines[to - 1].bytes;

			if (__builtin_add_overflow(*sum, lines[i].bytes, sum))
				*sum = MAX_COUNT;
			free(lines[i].text);
		} else {
			lines[to++] = lines[i];
		}
	}
	return to;
}

static int append_count(struct line *line)
{
	uint64_t count = line->bytes < MAX_COUNT ? line->bytes : MAX_COUNT;
	char *text;

	if (asprintf(&text, "%s %" PRIu64, line->text, count) < 0)
		return -ENOMEM;
	free(line->text);
	line->text = text;
	return 0;
}

/* Call folded_frames_add() for the paths of all stacks that are shown. */
static int note_paths(struct folded_frames *frames, const struct view *view)
{
	uint32_t path[VIEW_MAX_PATH];
	int err = 0;

	if (!folded_frames_wants_paths(frames))
		return 0;
	for (size_t i = 0; i < view_nr(view) && !err; i++)
		if (view_cost_of(view, i))
			err = folded_frames_add(frames, path, view_path(view, i, path));
	return err ? err : folded_frames_finish(frames);
}

static int make_lines(struct line *lines, size_t *nr, const struct folded_frames *frames,
		      const char *comm, const struct view *view)
{
	uint32_t path[VIEW_MAX_PATH];

	for (size_t i = 0; i < view_nr(view); i++) {
		struct line line = {.bytes = view_cost_of(view, i)};

		if (!line.bytes)
			continue;
		line.text = folded_frames_stack(frames, comm, path, view_path(view, i, path));
		if (!line.text)
			return -ENOMEM;
		lines[(*nr)++] = line;
	}
	return 0;
}

int print_folded(FILE *out, const char *comm, const struct view *view)
{
	struct line *lines = calloc(view_nr(view) + 1, sizeof(*lines));
	struct folded_frames *frames = NULL;
	char *root = folded_frame(comm);
	size_t nr = 0;
	int err = lines && root ? folded_frames_new(&frames, view_labels(view)) : -ENOMEM;

	if (!err)
		err = note_paths(frames, view);
	if (!err)
		err = make_lines(lines, &nr, frames, root, view);
	if (err)
		goto out;
	nr = merge(lines, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = append_count(&lines[i]);
	if (err)
		goto out;
	/* once more: sort(1) compares whole lines, and ' ' comes before ';' */
	if (nr)
		qsort(lines, nr, sizeof(*lines), compare);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s\n", lines[i].text);
out:
	for (size_t i = 0; lines && i < nr; i++)
		free(lines[i].text);
	free(root);
	folded_frames_free(frames);
	free(lines);
	return err;
}
