/* python_layout.c - see python_layout.h
 *
 * The numbers up to 3.12 are from the headers of CPython 3.8.18, 3.9.18, 3.10.13, 3.11.7
 * and 3.12.1, by offsetof(): tests/tools/python_offsets.py prints them.  If a release had others,
 * no state would be found that is the thread's, and so no frames.
 */
#include "record/interpreter/python_layout.h"

#include <stddef.h>
#include <string.h>

/* Up to 3.10: PyThreadState.frame, PyFrameObject.f_back, f_code, f_lasti. */
#define OBJECTS                                                                                 \
	.current_kind = PYTHON_GLOBAL, .shape = PYTHON_OBJECTS, .state_thread = 176,            \
	.state_frame = 24, .cframe_frame = PYTHON_DIRECT, .frame_code = 4, .frame_previous = 3, \
	.frame_instr = PYTHON_MORE, .code_line = 5, .first_line = 40, .code_file = 13,          \
	.code_name = 14, .code_lines = 15, .text = 48, .wide_text = 72, .text_shift = 2

/* Since 3.12: PyASCIIObject, PyCompactUnicodeObject. */
#define SHIMS .shape = PYTHON_SHIMS, .text = 40, .wide_text = 56

static const struct python_layout layouts[] = {
	{
		.offsets = {OBJECTS, .version = 0x0308, .frame_more = 104, .instr_unit = 1},
		.current = 1368, /* _PyRuntimeState.gilstate.tstate_current */
		.key = 1392,	 /* _PyRuntimeState.gilstate.autoTSSkey */
		.lines = MLK_LINES_CPYTHON_38,
	},
	{
		.offsets = {OBJECTS, .version = 0x0309, .frame_more = 104, .instr_unit = 1},
		.current = 568,
		.key = 584,
		.lines = MLK_LINES_CPYTHON_38,
	},
	{
		.offsets = {OBJECTS, .version = 0x030a, .frame_more = 96, .instr_unit = 2},
		.current = 568,
		.key = 584,
		.lines = MLK_LINES_CPYTHON_310,
	},
	{
		.offsets = {.version = 0x030b,
			    .current_kind = PYTHON_GLOBAL,
			    .shape = PYTHON_FLAGGED,
			    .state_thread = 152,
			    .state_frame = 56, /* cframe */
			    .cframe_frame = 8,
			    .frame_code = 4,
			    .frame_previous = 6,
			    .frame_instr = 7, /* prev_instr */
			    .frame_kind = 8,  /* is_entry */
			    .kind_shift = 32,
			    .code_line = 9,
			    .code_file = 14,
			    .code_name = 15,
			    .code_lines = 17,
			    .text = 48,
			    .wide_text = 72,
			    .text_shift = 2,
			    .first_line = 72,
			    .code_start = 184},
		.current = 576,
		.key = 592,
		.lines = MLK_LINES_CPYTHON_311,
	},
	{
		.offsets = {SHIMS, .version = 0x030c, .state_thread = 136,
			    .state_frame = 56, /* cframe */
			    .cframe_frame = 0, .frame_code = 0, .frame_previous = 1,
			    .frame_instr = 7, /* prev_instr */
			    .frame_kind = 8,  /* owner */
			    .kind_shift = 48, .code_line = 8, .code_file = 14, .code_name = 15,
			    .code_lines = 17, .text_shift = 2, .first_line = 68, .code_start = 192},
		.key = 1544,
		.lines = MLK_LINES_CPYTHON_311,
	},
	{
		.offsets = {SHIMS, .version = 0x030d, .cframe_frame = PYTHON_DIRECT,
			    .text_shift = 2},
		.key = 2160,
		.lines = MLK_LINES_CPYTHON_311,
		.state_words = 13,
		.frame_words = 6,
	},
	{
		.offsets = {SHIMS, .version = 0x030e, .cframe_frame = PYTHON_DIRECT,
			    .text_shift = 16},
		.lines = MLK_LINES_CPYTHON_311,
		.state_words = 16,
		.frame_words = 8,
	},
};

const struct python_layout *python_layout(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (layouts[i].offsets.version == version)
			return &layouts[i];
	return NULL;
}

/* Members of _Py_DebugOffsets, as words.  Those of a struct are counted from its first, its size.
 */
enum {
	OFFSETS_COOKIE,
	OFFSETS_VERSION,
	OFFSETS_FREE_THREADED,
	OFFSETS_RUNTIME, /* 3 words; behind them are those of an interpreter */
	OFFSETS_INTERPRETER = OFFSETS_RUNTIME + 3,

	THREAD_FRAME = 4, /* current_frame */
	THREAD_ID = 5,
	THREAD_WORDS = 9,

	FRAME_PREVIOUS = 1,
	FRAME_CODE = 2, /* executable */
	FRAME_INSTR = 3,
	FRAME_OWNER = 5,

	CODE_FILE = 1,
	CODE_NAME = 2,
	CODE_LINES = 4,
	CODE_FIRST_LINE = 5,
	CODE_START = 9,
	CODE_WORDS = 10,
};

/* The offset @offset of a word among the first @bytes, as its number.  False: it is none. */
static bool take_word(uint8_t *to, uint64_t offset, size_t bytes)
{
	*to = (uint8_t)(offset / 8);
	return offset % 8 == 0 && offset + 8 <= bytes;
}

static bool take_offset(uint16_t *to, uint64_t offset)
{
	*to = (uint16_t)offset;
	return offset < PYTHON_DIRECT;
}

/* Where the owner of a frame is, a byte at @offset: one of those that are read anyway, or not. */
static bool take_owner(struct event_python *at, uint64_t offset)
{
	uint64_t word = offset / 8 * 8;

	if (offset > 200)
		return false;
	at->kind_shift = (uint8_t)(offset % 8 * 8);
	at->frame_kind = (uint8_t)(offset / 8);
	if (word + 8 > PYTHON_FRAME_BYTES) {
		at->frame_more = (uint16_t)word;
		at->frame_kind = PYTHON_MORE;
	}
	return true;
}

static bool take_offsets(struct event_python *at, const uint64_t *thread, const uint64_t *frame,
			 const uint64_t *code)
{
	uint64_t line = code[CODE_FIRST_LINE];

	at->first_line = (uint8_t)line;
	return take_offset(&at->state_thread, thread[THREAD_ID]) &&
	       take_offset(&at->state_frame, thread[THREAD_FRAME]) &&
	       take_word(&at->frame_code, frame[FRAME_CODE], PYTHON_FRAME_BYTES) &&
	       take_word(&at->frame_previous, frame[FRAME_PREVIOUS], PYTHON_FRAME_BYTES) &&
	       take_word(&at->frame_instr, frame[FRAME_INSTR], PYTHON_FRAME_BYTES) &&
	       take_owner(at, frame[FRAME_OWNER]) &&
	       take_word(&at->code_file, code[CODE_FILE], PYTHON_CODE_BYTES) &&
	       take_word(&at->code_name, code[CODE_NAME], PYTHON_CODE_BYTES) &&
	       take_word(&at->code_lines, code[CODE_LINES], PYTHON_CODE_BYTES) && line % 4 == 0 &&
	       take_word(&at->code_line, line & ~7ull, PYTHON_CODE_BYTES) &&
	       take_offset(&at->code_start, code[CODE_START]);
}

const char *python_layout_fill(struct event_python *at, const struct python_layout *layout,
			       uint32_t version, const uint64_t *words, size_t nr)
{
	const uint64_t *thread = words + OFFSETS_INTERPRETER + layout->state_words;
	const uint64_t *frame = thread + THREAD_WORDS;
	const uint64_t *code = frame + layout->frame_words;

	*at = layout->offsets;
	if (!layout->state_words)
		return NULL;
	if (nr < (size_t)(code + CODE_WORDS - words) || memcmp(words, "xdebugpy", 8) != 0 ||
	    (uint32_t)words[OFFSETS_VERSION] != version)
		return "it does not tell where its frames are";
	if (words[OFFSETS_FREE_THREADED])
		return "it is built without the GIL";
	return take_offsets(at, thread, frame, code) ? NULL
						     : "its frames are not where they can be read";
}
