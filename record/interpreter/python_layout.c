/* python_layout.c - see python_layout.h; taken from the headers of CPython, by offsetof() */
#include "record/interpreter/python_layout.h"

#include <stddef.h>

static const struct python_layout layouts[] = {
	{
		/* 3.11: _PyRuntimeState.gilstate.tstate_current; _PyInterpreterFrame.is_entry */
		.offsets = {.version = 0x030b,
			    .state_thread = 152,
			    .state_frame = 56,
			    .cframe_frame = 8,
			    .frame_code = 4,
			    .frame_previous = 6,
			    .frame_instr = 7,
			    .frame_kind = 8,
			    .kind_shift = 32,
			    .code_line = 9,
			    .code_file = 14,
			    .code_name = 15,
			    .code_lines = 17,
			    .text = 48,
			    .wide_text = 72,
			    .first_line = 72,
			    .code_start = 184},
		.current = 576,
		.lines = MLK_LINES_CPYTHON_311,
	},
};

const struct python_layout *python_layout(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (layouts[i].offsets.version == version)
			return &layouts[i];
	return NULL;
}
