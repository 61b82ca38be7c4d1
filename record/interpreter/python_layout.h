/* python_layout.h - where the versions of CPython have what tells frames */
#ifndef RECORD_PYTHON_LAYOUT_H
#define RECORD_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/python.h"
#include "format/code.h"

/* Of one version. */
struct python_layout {
	struct event_python
		offsets;  /* without addresses; since 3.13 without what is told by tell */
	uint64_t current; /* PYTHON_GLOBAL: in _PyRuntime, the pointer to the state */
	uint32_t key;	  /* in _PyRuntime, the Py_tss_t; 0: not known */
	enum mlk_line_table lines;
	uint8_t state_words; /* since 3.13: words of _Py_DebugOffsets that describe interpreters */
	uint8_t frame_words; /* and frames */
};

/* The layout of @version, PY_VERSION_HEX >> 16; NULL: it is not known. */
const struct python_layout *python_layout(uint32_t version);

#define PYTHON_OFFSETS_WORDS 64 /* of _Py_DebugOffsets that are looked at */

/*
 * Fill *@at by @layout, and where that needs it by the @nr words of _Py_DebugOffsets, which such
 * interpreters begin _PyRuntime with.  @version: PY_VERSION_HEX.  Returns NULL, or why not.
 */
const char *python_layout_fill(struct event_python *at, const struct python_layout *layout,
			       uint32_t version, const uint64_t *words, size_t nr);

#endif
