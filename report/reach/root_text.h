/* root_text.h - what a root is, for people and programs */
#ifndef REPORT_ROOT_TEXT_H
#define REPORT_ROOT_TEXT_H

#include <stdio.h>

#include "report/base/json.h"
#include "report/reach/root_names.h"

/* Print what @name is, safely.  @thread is the name of the thread that it is of, or "", and
 * @mapping the stack by which its memory was mapped, or NULL. */
void root_text_print(FILE *out, const struct root_name *name, const char *thread,
		     const char *mapping);

/* Static text: "variable", ... */
const char *root_text_word(enum root_kind kind);

/* The members of an object for @name, but its kind and text. */
void root_text_json(struct json *json, const struct root_name *name);

#endif
