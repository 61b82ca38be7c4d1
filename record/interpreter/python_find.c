/* python_find.c - see python_find.h */
#include "record/interpreter/python_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/interpreter/python_code.h"
#include "record/interpreter/python_layout.h"
#include "record/module/elffile.h"

/* What is looked for among the file's dynamic symbols. */
enum { RUNTIME, CODE_TYPE, VERSION, GET_VERSION, GET_CURRENT, EVAL, OLD_EVAL };

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

/* As interpreter_kind.describe. */
static bool describe(struct interpreter_place *place, Elf *elf, const struct elf_place *found,
		     uint64_t bias)
{
	uint32_t version;
	const char *why;

	if (!found[CODE_TYPE].size || (!found[EVAL].size && !found[OLD_EVAL].size))
		return false;
	version = find_version(elf, found);
	if (version)
		snprintf(place->version, sizeof(place->version), "%u.%u.%u", version >> 24,
			 version >> 16 & 0xff, version >> 8 & 0xff);
	interpreter_set_ranges(place, elf, found[EVAL].size ? &found[EVAL] : &found[OLD_EVAL],
			       bias);
	why = find_layout(&place->at, elf, version, found, bias);
	if (why)
		interpreter_give_up(place, why);
	return true;
}

const struct interpreter_kind python_kind = {
	.language = MLK_LANGUAGE_PYTHON,
	.file = "python",
	.symbols =
		{
			[RUNTIME] = "_PyRuntime",
			[CODE_TYPE] = "PyCode_Type",
			[VERSION] = "Py_Version",
			[GET_VERSION] = "Py_GetVersion",
			[GET_CURRENT] = "_PyThreadState_GetCurrent",
			[EVAL] = "_PyEval_EvalFrameDefault",
			[OLD_EVAL] = "PyEval_EvalFrameEx", /* which interprets up to 3.5 */
		},
	.describe = describe,
};
