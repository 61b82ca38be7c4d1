/* python_layout.h - where the versions of CPython have what tells frames */
#ifndef RECORD_PYTHON_LAYOUT_H
#define RECORD_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/python.h"
#include "format/code.h"

/* Of one version. */
struct python_layout {
	struct event_python offsets; /* without addresses */
	uint64_t current;	     /* in _PyRuntime: the pointer that offsets.current is about */
	enum mlk_line_table lines;
};

/* The layout of @version, PY_VERSION_HEX >> 16; NULL: it is not known. */
const struct python_layout *python_layout(uint32_t version);

#endif
