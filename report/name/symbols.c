/* symbols.c - see symbols.h */
#include "report/name/symbols.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/text.h"
#include "report/name/code_name.h"
#include "report/name/module_names.h"

#define SHORT_PATH 40 /* columns up to which a source file's path is shown whole */

/* A frame that is to be named, and what its labels say of its module. */
struct spot {
	const struct dwunw_frame *frame;
	uint32_t module;
};

int symbols_new(struct symbols **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_frame(const void *things, uint32_t number, const void *key)
{
	const struct dwunw_frame *a = &((const struct symbols *)things)->all[number];
	const struct dwunw_frame *b = key;

	/* that a stack stops at a frame does not change its name */
	return a->pc == b->pc && a->addr == b->addr && a->module == b->module &&
	       !((a->flags ^ b->flags) & ~(uint32_t)DWUNW_FRAME_FLAG_PARTIAL);
}

static struct hash_query query_for_frame(const struct symbols *names,
					 const struct dwunw_frame *frame)
{
	return (struct hash_query){
		.hash = hash_word(hash_word(frame->module, frame->addr), frame->pc),
		.things = names,
		.key = frame,
		.equal = same_frame,
	};
}

int symbols_want(struct symbols *names, const struct dwunw_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct hash_query query = query_for_frame(names, &frames[i]);
		uint32_t number;

		if (intern(&names->table, &query, &frames[i], sizeof(frames[i]), &number) < 0)
			return -ENOMEM;
	}
	return 0;
}

const char *symbols_module_path(const struct symbols_source *source,
				const struct dwunw_frame *frame)
{
	const char *path = NULL;

	if (frame->flags & DWUNW_FRAME_FLAG_GENERATED)
		return NAMES_GENERATED;
	if (frame->module == DWUNW_NO_MODULE)
		return interpreted_is(frame)
			       ? interpreted_module(&source->images->interpreted, frame)
			       : "";
	path = dwunw_module_path(source->dw, frame->module);
	if (!path)
		path = trace_modules_absent_path(source->images, frame->module);
	return path ? path : "";
}

const char *symbols_code(const struct symbols_source *source, const struct dwunw_frame *frame)
{
	const char *name = NULL;

	if (!(frame->flags & DWUNW_FRAME_FLAG_GENERATED))
		return NULL;
	if (frame->module != DWUNW_NO_MODULE)
		name = trace_modules_absent_path(source->images, frame->module);
	return name ? name : NAMES_GENERATED;
}

/* MODULE+0xADDR, or 0xPC.  In a module that the trace does not hold ADDR is an offset into the
 * file, which is mostly the same.  Returns a string to be freed, or NULL. */
static char *place_text(const struct symbols_source *source, const struct dwunw_frame *frame)
{
	const char *path = symbols_module_path(source, frame);
	const char *remark = trace_modules_remark_text(source->images, frame);
	char *text;
	int len;

	if (remark)
		return strdup(remark);
	if (frame->flags & DWUNW_FRAME_FLAG_GENERATED)
		return strdup(symbols_code(source, frame));
	len = *path ? asprintf(&text, "%s+0x%" PRIx64, text_file_name(path), frame->addr)
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
static char *location_text(const char *file, uint32_t line)
{
	const char *dots, *path;
	char *text;
	int len;

	if (!file)
		return strdup("");
	path = short_path(file, &dots);
	len = line ? asprintf(&text, "%s%s:%" PRIu32, dots, path, line)
		   : asprintf(&text, "%s%s", dots, path);
	return len < 0 ? NULL : text;
}

/* Append the label of @spot, or of what is inlined there, with this name and location. */
static int add_label(struct symbols *names, struct labels *labels, const struct spot *spot,
		     const char *name, const char *location)
{
	const char *mark = spot->frame->flags & DWUNW_FRAME_FLAG_GUESSED ? NAMES_GUESSED : "";
	uint32_t number;
	char *marked;
	int err;

	if (asprintf(&marked, "%s%s", name, mark) < 0)
		return -ENOMEM;
	err = labels_intern(labels, spot->module, marked, location, &number);
	if (!err)
		err = array_append(&names->labels, &names->nr_labels, &names->labels_room, &number,
				   sizeof(number));
	names->guessed |= mark[0] != 0;
	names->generated |= !strcmp(name, NAMES_GENERATED);
	free(marked);
	return err;
}

static int name_inlined(struct symbols *names, const struct spot *spot,
			const struct dwunw_inline *inlined, bool lines, struct labels *labels)
{
	char *location = location_text(lines ? inlined->file : NULL, inlined->line), *name;
	int err = -ENOMEM;

	if (asprintf(&name, "%s (inlined)", inlined->function ? inlined->function : "?") < 0)
		name = NULL;
	if (location && name)
		err = add_label(names, labels, spot, name, location);
	free(location);
	free(name);
	return err;
}

/* The name of a frame that has this symbol, to be freed; NULL: no memory. */
static char *frame_text(const struct symbols_source *source, const struct dwunw_frame *frame,
			const struct dwunw_symbol *symbol, bool offsets)
{
	char *text;

	if (!symbol->function)
		return place_text(source, frame);
	if (!offsets)
		return strdup(symbol->function);
	return asprintf(&text, "%s+0x%" PRIx64, symbol->function, symbol->offset) < 0 ? NULL : text;
}

/* Add the label of a frame that has this symbol. */
static int name_one(struct symbols *names, const struct symbols_source *source,
		    const struct spot *spot, const struct symbols_opts *opts, struct labels *labels)
{
	const struct dwunw_symbol *symbol = &names->symbols[spot->frame - names->all];
	char *name = frame_text(source, spot->frame, symbol, opts->offsets);
	char *location = location_text(opts->lines ? symbol->file : NULL, symbol->line);
	int err = -ENOMEM;

	if (location && name)
		err = add_label(names, labels, spot, name, location);
	free(location);
	free(name);
	return err;
}

static int name_all(struct symbols *names, const struct symbols_source *source,
		    const struct symbols_opts *opts, struct labels *labels)
{
	struct spot spot = {0};
	const char *last = NULL; /* module of the frame before: mostly the same */
	int err = 0;

	for (size_t i = names->nr_named; i < names->nr && !err; i++) {
		const struct dwunw_symbol *symbol = &names->symbols[i];
		const char *path = symbols_module_path(source, &names->all[i]);

		spot.frame = &names->all[i];
		if (path != last)
			err = labels_module(labels, path, &spot.module);
		last = path;
		names->first[i] = names->nr_labels;
		for (size_t at = 0; opts->inlined && at < symbol->nr_inlined && !err; at++)
			err = name_inlined(names, &spot, &symbol->inlined[at], opts->lines, labels);
		if (!err)
			err = name_one(names, source, &spot, opts, labels);
	}
	names->first[names->nr] = names->nr_labels;
	return err;
}

/* Make *@array, which @has things of @size, have @nr of them; the new ones are zero.  Returns 0 or
 * -ENOMEM. */
static int grow_to(void *array, size_t has, size_t nr, size_t size)
{
	void *all;

	memcpy(&all, array, sizeof(all));
	all = reallocarray(all, nr, size);
	if (!all)
		return -ENOMEM;
	memset((char *)all + has * size, 0, (nr - has) * size);
	memcpy(array, &all, sizeof(all));
	return 0;
}

/* Room for what is known of the frames that are new.  Zeroed: that is nothing of any frame, as
 * --addresses wants it. */
static int grow_named(struct symbols *names)
{
	size_t has = names->first ? names->nr_named + 1 : 0, nr = names->nr + 1;
	int err = grow_to(&names->symbols, has, nr, sizeof(*names->symbols));

	if (!err)
		err = grow_to(&names->first, has, nr, sizeof(*names->first));
	return err ? err : grow_to(&names->unnamed, has, nr, sizeof(*names->unnamed));
}

/* Keep @text, to be freed, as long as the names. */
static int keep_text(struct symbols *names, char *text)
{
	int err = text ? array_append(&names->texts, &names->nr_texts, &names->texts_room, &text,
				      sizeof(text))
		       : 0;

	if (err)
		free(text);
	return err;
}

/* Name a frame of generated code, of which the runtime has told @text. */
static int name_code(struct symbols *names, const char *text, struct dwunw_symbol *symbol)
{
	struct code_name name;
	int err = code_name_parse(&name, text);

	if (err)
		return err;
	*symbol = (struct dwunw_symbol){
		.function = name.function, .file = name.file, .line = name.line};
	err = keep_text(names, name.function);
	if (err)
		free(name.file);
	return err ? err : keep_text(names, name.file);
}

/* Name those of the frames from @done on that are of generated code. */
static int name_all_code(struct symbols *names, const struct symbols_source *source, size_t done)
{
	int err = 0;

	for (size_t i = done; i < names->nr && !err; i++) {
		const char *code = symbols_code(source, &names->all[i]);

		if (code)
			err = name_code(names, code, &names->symbols[i]);
	}
	return err;
}

/* Have the frames from @done on be found by their places. */
static int index_places(struct symbols *names, const struct dwunw *dw, size_t done)
{
	for (size_t i = done; i < names->nr; i++) {
		uint32_t place = dwunw_frame_place(dw, &names->all[i]);

		if (array_cover(&names->by_place, &names->nr_places, (size_t)place + 1,
				sizeof(*names->by_place)))
			return -ENOMEM;
		names->by_place[place] = (uint32_t)i;
	}
	return 0;
}

int symbols_resolve(struct symbols *names, const struct symbols_source *source,
		    const struct symbols_opts *opts, struct labels *labels)
{
	const size_t done = names->nr_named, nr = names->nr;
	int err = grow_named(names);

	if (!err && !opts->addresses && nr > done)
		err = module_names_prepare(source->dw, names->all + done, nr - done);
	if (!err && !opts->addresses && nr > done)
		err = dwunw_symbol_resolve_batch(source->dw, names->all + done, nr - done,
						 names->symbols + done);
	if (!err && !opts->addresses)
		err = name_all_code(names, source, done);
	for (size_t i = done; i < nr && !err && !opts->addresses; i++)
		if (interpreted_is(&names->all[i]))
			interpreted_symbol(&source->images->interpreted, &names->all[i],
					   &names->symbols[i]);
	for (size_t i = done; i < nr && !err; i++)
		names->unnamed[i] = !opts->addresses && !names->symbols[i].function &&
				    !trace_modules_remark_text(source->images, &names->all[i]);
	if (!err)
		err = name_all(names, source, opts, labels);
	if (!err)
		err = index_places(names, source->dw, done);
	if (!err)
		names->nr_named = nr;
	return err;
}

/* The number of @frame, which was noted. */
static uint32_t number_of(const struct symbols *names, const struct dwunw_frame *frame)
{
	struct hash_query query = query_for_frame(names, frame);
	uint32_t number = 0;
	bool found = hash_index_find(&names->index, &query, &number);

	assert(found);
	(void)found;
	return number;
}

const struct dwunw_symbol *symbols_symbol(const struct symbols *names,
					  const struct dwunw_frame *frame)
{
	return &names->symbols[number_of(names, frame)];
}

const uint32_t *symbols_labels(const struct symbols *names, const struct dwunw_frame *frame,
			       size_t *nr)
{
	uint32_t number = number_of(names, frame);

	*nr = names->first[number + 1] - names->first[number];
	return &names->labels[names->first[number]];
}

void symbols_each_unnamed(const struct symbols *names,
			  void (*visit)(void *arg, const struct dwunw_frame *frame), void *arg)
{
	for (size_t i = 0; i < names->nr; i++)
		if (names->unnamed[i])
			visit(arg, &names->all[i]);
}

void symbols_free(struct symbols *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->nr_texts; i++)
		free(names->texts[i]);
	free(names->texts);
	intern_release(&names->table);
	free(names->labels);
	free(names->symbols);
	free(names->first);
	free(names->unnamed);
	free(names->by_place);
	free(names);
}
