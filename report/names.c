/* names.c - see names.h */
#include "report/names.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"

#define SHORT_PATH 40 /* columns up to which a source file's path is shown whole */

struct names {
	struct dwunw_frame *frames; /* distinct */
	size_t nr, room;
	uint32_t *labels; /* of each frame, after names_resolve() */
	struct hash_index index;
};

int names_new(struct names **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_frame(const void *things, uint32_t number, const void *key)
{
	const struct dwunw_frame *a = &((const struct names *)things)->frames[number];
	const struct dwunw_frame *b = key;

	/* that a stack stops at a frame does not change its name */
	return a->pc == b->pc && a->addr == b->addr && a->module == b->module &&
	       !((a->flags ^ b->flags) & ~(uint32_t)DWUNW_FRAME_FLAG_PARTIAL);
}

static struct hash_query query_for(const struct names *names, const struct dwunw_frame *frame)
{
	return (struct hash_query){
		.hash = hash_word(hash_word(frame->module, frame->addr), frame->pc),
		.things = names,
		.key = frame,
		.equal = same_frame,
	};
}

int names_want(struct names *names, const struct dwunw_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct hash_query query = query_for(names, &frames[i]);
		struct dwunw_frame *all;
		uint32_t number;

		if (hash_index_find(&names->index, &query, &number))
			continue;
		if (names->nr >= UINT32_MAX)
			return -ENOMEM;
		all = array_grow(names->frames, &names->room, names->nr + 1, sizeof(*all));
		if (!all)
			return -ENOMEM;
		names->frames = all;
		if (hash_index_add(&names->index, query.hash, (uint32_t)names->nr))
			return -ENOMEM;
		names->frames[names->nr++] = frames[i];
	}
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* MODULE+0xADDR, or 0xPC.  In a module that the trace does not hold ADDR is an offset into the
 * file, which is mostly the same.  Returns a string to be freed, or NULL. */
static char *place_text(const struct names_source *source, const struct dwunw_frame *frame)
{
	const char *path = NULL;
	char *text;
	int len;

	if (frame->module != DWUNW_NO_MODULE) {
		path = dwunw_module_path(source->dw, frame->module);
		if (!path)
			path = images_absent_path(source->images, frame->module);
	}
	len = path ? asprintf(&text, "%s+0x%" PRIx64, base_name(path), frame->addr)
		   : asprintf(&text, "0x%" PRIx64, frame->pc);
	return len < 0 ? NULL : text;
}

/* The path of a source file, or only its last two components when it is long. */
static const char *short_path(const char *path, const char **dots)
{
	const char *at = path + strlen(path);
	int slashes = 0;

	*dots = "";
	if (at - path <= SHORT_PATH)
		return path;
	while (at > path && slashes < 2)
		slashes += *--at == '/';
	if (slashes < 2)
		return path;
	*dots = "...";
	return at;
}

/* FILE:LINE, FILE or nothing.  Returns a string to be freed, or NULL. */
static char *location_text(const struct dwunw_symbol *symbol)
{
	const char *dots, *path;
	char *text;
	int len;

	if (!symbol->file)
		return strdup("");
	path = short_path(symbol->file, &dots);
	len = symbol->line ? asprintf(&text, "%s%s:%" PRIu32, dots, path, symbol->line)
			   : asprintf(&text, "%s%s", dots, path);
	return len < 0 ? NULL : text;
}

/* Add the label of a frame that has this symbol. */
static int name_one(const struct names_source *source, const struct dwunw_frame *frame,
		    const struct dwunw_symbol *symbol, struct labels *labels, uint32_t *number)
{
	char *place = symbol->function ? NULL : place_text(source, frame);
	char *location = location_text(symbol);
	int err = -ENOMEM;

	if (location && (symbol->function || place))
		err = labels_intern(labels, place ? place : symbol->function, location, number);
	free(location);
	free(place);
	return err;
}

int names_resolve(struct names *names, const struct names_source *source,
		  const struct names_opts *opts, struct labels *labels)
{
	struct dwunw_symbol *symbols;
	int err = -ENOMEM;

	/* zeroed: nothing is known of any frame, as --addresses wants it */
	symbols = calloc(names->nr ? names->nr : 1, sizeof(*symbols));
	names->labels = calloc(names->nr ? names->nr : 1, sizeof(*names->labels));
	if (!symbols || !names->labels)
		goto out;
	err = opts->addresses || !names->nr
		      ? 0
		      : dwunw_symbol_resolve_batch(source->dw, names->frames, names->nr, symbols);
	for (size_t i = 0; i < names->nr && !err; i++) {
		if (!opts->lines)
			symbols[i].file = NULL;
		err = name_one(source, &names->frames[i], &symbols[i], labels, &names->labels[i]);
	}
out:
	free(symbols);
	return err;
}

uint32_t names_label(const struct names *names, const struct dwunw_frame *frame)
{
	struct hash_query query = query_for(names, frame);
	uint32_t number = 0;
	bool found = hash_index_find(&names->index, &query, &number);

	assert(found);
	(void)found;
	return names->labels[number];
}

void names_free(struct names *names)
{
	if (!names)
		return;
	free(names->frames);
	free(names->labels);
	hash_index_release(&names->index);
	free(names);
}
