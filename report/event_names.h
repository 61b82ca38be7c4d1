/* event_names.h - what the functions in a trace are called */
#ifndef REPORT_EVENT_NAMES_H
#define REPORT_EVENT_NAMES_H

#include "format/trace.h"

/* The allocating function with the number @func (enum mlk_func), as "malloc": static text; NULL for
 * one that this mleak does not know. */
const char *event_func_name(unsigned int func);

#endif
