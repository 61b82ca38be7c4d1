/* names.h - what the files without names are called that are mapped into a target */
#ifndef RECORD_REMOTE_NAMES_H
#define RECORD_REMOTE_NAMES_H

#include "record/libpreload/ring.h"

#define INJECT_CODE_NAME  "mleak code"
#define INJECT_RINGS_NAME PRELOAD_MEMORY_NAME

/* The kernel shows them so, in maps and below fd. */
#define INJECT_SHOWN(name) "/memfd:" name " (deleted)"

#endif
