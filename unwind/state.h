/* state.h - what the parts of libdwunw ask of struct dwunw */
#ifndef DWUNW_STATE_H
#define DWUNW_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/debugfile.h"
#include "unwind/dwunw.h"
#include "unwind/module.h"

/* The module @number, or NULL when there is none. */
struct dwunw_module *dwunw_module_get(const struct dwunw *dw, uint32_t number);

/* The directories added by dwunw_debug_dir_add(). */
const struct dwunw_debug_dirs *dwunw_dirs(const struct dwunw *dw);

#endif
