/* python_find.c - see python_find.h */
#include "record/interpreter/python_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/interpreter/python_code.h"
#include "record/interpreter/python_layout.h"
#include "record/module/elffile.h"

/* What is looked for among the file's dynamic symbols. */
enum { RUNTIME, CODE_TYPE, VERSION, GET_VERSION, GET_CURRENT, EVAL, OLD_EVAL, NR_SYMBOLS };

static const char *const names[NR_SYMBOLS] = {
	[RUNTIME] = "_PyRuntime",
	[CODE_TYPE] = "PyCode_Type",
	[VERSION] = "Py_Version",
	[GET_VERSION] = "Py_GetVersion",
	[GET_CURRENT] = "_PyThreadState_GetCurrent",
	[EVAL] = "_PyEval_EvalFrameDefault",
	[OLD_EVAL] = "PyEval_EvalFrameEx", /* which interprets up to 3.5 */
};

bool python_is_likely(const struct mlk_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name && strstr(name, "python");
}

/* PY_VERSION_HEX; 0: it is not told. */
static uint32_t find_version(Elf *elf, const struct elf_place *found)
{
	uint64_t version;
	size_t len;
	const void *bytes = NULL;

	if (!found[VERSION].size)
		return python_code_version(elf, &found[GET_VERSION]);
	bytes = elffile_bytes(elf, found[VERSION].start, sizeof(version), &len);
	if (!bytes || len < sizeof(version))
		return 0;
	memcpy(&version, bytes, sizeof(version));
	return (uint32_t)version;
}

/* Find where frames are.  Returns NULL, or why they cannot be read. */
static const char *find_layout(struct event_python *at, Elf *elf, uint32_t version,
			       const struct elf_place *found, uint64_t bias)
{
	const struct python_layout *layout = python_layout(version >> 16);
	uint64_t words[PYTHON_OFFSETS_WORDS];
	const char *why;
	const void *bytes;
	size_t len = 0;

	if (!layout || !found[RUNTIME].size)
		return "frames are known of 3.8 to 3.14 only";
	/* the file has them: when a library was just mapped, its data is not yet there */
	bytes = elffile_bytes(elf, found[RUNTIME].start, sizeof(words), &len);
	if (bytes)
		memcpy(words, bytes, len);
	why = python_layout_fill(at, layout, version, words, bytes ? len / sizeof(*words) : 0);
	if (why)
		return why;
	at->current = found[RUNTIME].start + bias + layout->current;
	at->code_type = found[CODE_TYPE].start + bias;
	at->key = layout->key ? found[RUNTIME].start + bias + layout->key : 0;
	if (at->current_kind == PYTHON_NOWHERE &&
	    !python_code_current(at, elf, &found[GET_CURRENT], bias))
		return "the code that tells its thread is not known";
	return NULL;
}

/* Fill @place by what was @found in @elf, moved by @bias. */
static void describe(struct interpreter_place *place, Elf *elf, const struct elf_place *found,
		     uint64_t bias)
{
	uint32_t version = find_version(elf, found);
	const char *why;

	if (version)
		snprintf(place->version, sizeof(place->version), "%u.%u.%u", version >> 24,
			 version >> 16 & 0xff, version >> 8 & 0xff);
	interpreter_set_ranges(place, elf, found[EVAL].size ? &found[EVAL] : &found[OLD_EVAL],
			       bias);
	why = find_layout(&place->at, elf, version, found, bias);
	if (!why)
		return;
	place->at = (struct event_python){0};
	snprintf(place->why, sizeof(place->why), "%s", why);
}

bool python_find(struct interpreter_place *place, const struct target *t,
		 const struct mlk_mapping *m)
{
	struct elf_place found[NR_SYMBOLS] = {{0}};
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is = false;

	*place = (struct interpreter_place){.language = MLK_LANGUAGE_PYTHON};
	if (elf) {
		interpreter_symbols(elf, names, NR_SYMBOLS, found);
		is = found[CODE_TYPE].size && (found[EVAL].size || found[OLD_EVAL].size);
		if (is)
			describe(place, elf, found,
				 m->start - m->offset - elffile_bias(elf, m->offset));
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}
