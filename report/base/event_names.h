/* event_names.h - what the functions in a trace are called */
#ifndef REPORT_EVENT_NAMES_H
#define REPORT_EVENT_NAMES_H

#include "format/trace.h"

/* The allocating function with the number @func (enum mlk_func), as "malloc": static text; NULL for
 * one that this mleak does not know. */
const char *event_func_name(unsigned int func);

/* The kind of an event in capitals, as "ALLOC"; NULL for one that is not known. */
const char *event_kind_name(unsigned int kind);

/* What was done to pages: the name of an enum mlk_pages; NULL for one that is not known. */
const char *event_pages_name(unsigned int pages);

/* One word for an enum mlk_loss, and for an enum mlk_skip. */
const char *event_loss_name(int kind);
const char *event_skip_name(int kind);

/* How much of the stacks a trace holds: the name of an enum mlk_stack_mode; NULL for another. */
const char *stack_mode_name(unsigned int mode);

#endif
