/* folded_frames.c - see folded_frames.h */
#include "report/machine/folded_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/machine/print_folded.h"
#include "report/view/tree.h"

struct folded_frames {
	const struct labels *labels;
	char **all;	   /* of each label */
	struct tree *tree; /* of all paths; NULL: each name is of one module, so all are as above */
	char **told;	   /* of each node of which the module is told, else NULL; NULL: none is */
};

/* Make the tree, if one is needed. */
static int start_tree(struct folded_frames *frames)
{
	uint32_t *functions = calloc(labels_nr(frames->labels) + 1, sizeof(*functions));
	bool found = false;
	int err = functions ? labels_functions(frames->labels, functions, &found) : -ENOMEM;

	if (!err && found)
		err = tree_new(&frames->tree);
	if (!err && found)
		err = tree_by_function(frames->tree, frames->labels);
	free(functions);
	return err;
}

int folded_frames_new(struct folded_frames **out, const struct labels *labels)
{
	struct folded_frames *frames = calloc(1, sizeof(*frames));
	size_t nr = labels_nr(labels);
	int err = 0;

	*out = NULL;
	if (!frames)
		return -ENOMEM;
	frames->labels = labels;
	frames->all = calloc(nr + 1, sizeof(*frames->all));
	if (!frames->all)
		err = -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++) {
		frames->all[i] = folded_frame(labels_get(labels, i)->name);
		if (!frames->all[i])
			err = -ENOMEM;
	}
	if (!err)
		err = start_tree(frames);
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
	frames->told = calloc(tree_nr(frames->tree), sizeof(*frames->told));
	if (!frames->told)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree_nr(frames->tree); i++) {
		const char *told = tree_told(frames->tree, i);
		uint32_t label = tree_node(frames->tree, i)->label;
		char *name;

		if (!told)
			continue;
		if (asprintf(&name, "%s [%s]", labels_get(frames->labels, label)->name, told) < 0)
			return -ENOMEM;
		frames->told[i] = folded_frame(name);
		free(name);
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
static char *append(char *to, const char *from)
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
	at = append(text, comm);
	node = TREE_ROOT;
	for (size_t i = 0; i < nr; i++) {
		*at++ = ';';
		at = append(at, frame_at(frames, path[i], &node));
	}
	*at = '\0';
	return text;
}

void folded_frames_free(struct folded_frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; frames->told && i < tree_nr(frames->tree); i++)
		free(frames->told[i]);
	for (size_t i = 0; frames->all && i < labels_nr(frames->labels); i++)
		free(frames->all[i]);
	free(frames->told);
	free(frames->all);
	tree_free(frames->tree);
	free(frames);
}
