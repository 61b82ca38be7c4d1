/* alloc_functions.h - the functions that are looked for in an allocator's object */
#ifndef RECORD_ALLOC_FUNCTIONS_H
#define RECORD_ALLOC_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/allocator/allocator.h"

/* WANTED_OWN counts only where malloc is: elsewhere it is another's. */
enum alloc_functions_group { WANTED_C, WANTED_MAP, WANTED_OWN };

struct alloc_function {
	const char *name;
	uint32_t func; /* enum event_func */
	enum site_kind kind;
	unsigned int nr_args;
	enum alloc_functions_group group;
};

#define WANTED_NR     37
#define WANTED_MALLOC 0 /* where the table has it */

/* An operator comes behind those that it calls. */
extern const struct alloc_function wanted[WANTED_NR];

_Static_assert(WANTED_NR <= ALLOCATOR_MAX_SITES, "room for all");

/* Is wanted[@i] an operator new, or any of C++'s operators? */
bool alloc_functions_is_new(size_t i);
bool alloc_functions_is_operator(size_t i);

#endif
