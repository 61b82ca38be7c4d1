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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"
#include "report/name/frame_kind.h"
#include "report/view/tree.h"

#define MAX_COUNT (((uint64_t)1 << 53) - 1) /* readers in JavaScript count in doubles */

struct folded_frames {
	const struct labels *labels;
	char **all;	   /* of each label */
	struct tree *tree; /* of all paths; NULL: each name is of one module, so all are as above */
	char **told;	   /* of each node of which the module is told, else NULL; NULL: none is */
};

/* Make the tree, if one is needed. */
static int start_frames_tree(struct folded_frames *frames)
{
	struct label_functions functions = {0};
	int err = label_functions_update(&functions, frames->labels);

	if (!err && functions.namesakes)
		err = tree_new(&frames->tree);
	if (!err && functions.namesakes)
		err = tree_by_function(frames->tree, frames->labels);
	label_functions_release(&functions);
	return err;
}

/* What kind of code the function of @label is of. */
static const char *mark_of(const struct labels *labels, uint32_t label)
{
	const struct label *l = &labels->all[label];

	return frame_kind_mark(labels->modules->all[l->module], l->name);
}

/* The frame of @label, with what tells its kind, or @told, which tells its module, in brackets.
 * Returns a string that the caller frees, or NULL when there is no memory. */
static char *make_frame(const struct labels *labels, uint32_t label, const char *told)
{
	const char *mark = mark_of(labels, label), *name_alone = labels->all[label].name;
	char *name, *frame;
	int len = told && !*mark ? asprintf(&name, "%s [%s]", name_alone, told)
				 : asprintf(&name, "%s%s", name_alone, mark);

	if (len < 0)
		return NULL;
	frame = folded_frame(name);
	free(name);
	return frame;
}

int folded_frames_new(struct folded_frames **out, const struct labels *labels)
{
	struct folded_frames *frames = calloc(1, sizeof(*frames));
	size_t nr = labels->nr;
	int err = 0;

	*out = NULL;
	if (!frames)
		return -ENOMEM;
	frames->labels = labels;
	frames->all = calloc(nr + 1, sizeof(*frames->all));
	if (!frames->all)
		err = -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++) {
		frames->all[i] = make_frame(labels, i, NULL);
		if (!frames->all[i])
			err = -ENOMEM;
	}
	if (!err)
		err = start_frames_tree(frames);
	if (err)
		folded_frames_free(frames);
	else
		*out = frames;
	return err;
}

bool folded_frames_wants_paths(const struct folded_frames *frames)
{
	return frames->tree != NULL;
}

int folded_frames_add(struct folded_frames *frames, const uint32_t *path, size_t nr)
{
	return frames->tree ? tree_add(frames->tree, path, nr, 0, 0) : 0;
}

int folded_frames_finish(struct folded_frames *frames)
{
	int err = frames->tree ? tree_tell_apart(frames->tree, frames->labels) : 0;

	if (err || !frames->tree)
		return err;
	frames->told = calloc(frames->tree->nr, sizeof(*frames->told));
	if (!frames->told)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames->tree->nr; i++) {
		const char *told = tree_told(frames->tree, i);

		if (!told)
			continue;
		frames->told[i] = make_frame(frames->labels, frames->tree->all[i].label, told);
		if (!frames->told[i])
			return -ENOMEM;
	}
	return 0;
}

/* The frame of @label below the node *@at, which becomes its own. */
static const char *frame_at(const struct folded_frames *frames, uint32_t label, uint32_t *at)
{
	if (frames->tree)
		*at = tree_child(frames->tree, *at, label);
	return frames->told && frames->told[*at] ? frames->told[*at] : frames->all[label];
}

/* Copy @from to @to without its NUL.  Returns where it ends. */
static char *append_text(char *to, const char *from)
{
	size_t len = strlen(from);

	memcpy(to, from, len);
	return to + len;
}

char *folded_frames_stack(const struct folded_frames *frames, const char *comm,
			  const uint32_t *path, size_t nr)
{
	uint32_t node = TREE_ROOT;
	size_t len = strlen(comm);
	char *text, *at;

	for (size_t i = 0; i < nr; i++)
		len += 1 + strlen(frame_at(frames, path[i], &node));
	text = malloc(len + 1);
	if (!text)
		return NULL;
	at = append_text(text, comm);
	node = TREE_ROOT;
	for (size_t i = 0; i < nr; i++) {
		*at++ = ';';
		at = append_text(at, frame_at(frames, path[i], &node));
	}
	*at = '\0';
	return text;
}

void folded_frames_free(struct folded_frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; frames->told && i < frames->tree->nr; i++)
		free(frames->told[i]);
	for (size_t i = 0; frames->all && i < frames->labels->nr; i++)
		free(frames->all[i]);
	free(frames->told);
	free(frames->all);
	tree_free(frames->tree);
	free(frames);
}

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

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Sort @lines, and make one of those with equal stacks.  Returns how many are left. */
static size_t merge_lines(struct line *lines, size_t nr)
{
	size_t to = 0;

	qsort(lines, nr, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < nr; i++) {
		if (to && !compare_lines(&lines[to - 1], &lines[i])) {
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
	for (size_t i = 0; i < view->nr && !err; i++)
		if (view_cost_of(view, i))
			err = folded_frames_add(frames, path, view_path(view, i, path));
	return err ? err : folded_frames_finish(frames);
}

static int make_lines(struct line *lines, size_t *nr, const struct folded_frames *frames,
		      const char *comm, const struct view *view)
{
	uint32_t path[VIEW_MAX_PATH];

	for (size_t i = 0; i < view->nr; i++) {
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
	struct line *lines = calloc(view->nr + 1, sizeof(*lines));
	struct folded_frames *frames = NULL;
	char *root = folded_frame(comm);
	size_t nr = 0;
	int err = lines && root ? folded_frames_new(&frames, view->labels) : -ENOMEM;

	if (!err)
		err = note_paths(frames, view);
	if (!err)
		err = make_lines(lines, &nr, frames, root, view);
	if (err)
		goto out;
	nr = merge_lines(lines, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = append_count(&lines[i]);
	if (err)
		goto out;
	/* once more: sort(1) compares whole lines, and ' ' comes before ';' */
	if (nr)
		qsort(lines, nr, sizeof(*lines), compare_lines);
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
