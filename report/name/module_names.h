/* module_names.h - the symbols and debug information of several modules, read by two threads */
#ifndef REPORT_MODULE_NAMES_H
#define REPORT_MODULE_NAMES_H

#include <stddef.h>

#include "unwind/dwunw.h"

/* Have @dw read what names of the @nr @frames are found with, as dwunw_symbol_prepare().  Returns 0
 * or -ENOMEM. */
int module_names_prepare(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr);

#endif
