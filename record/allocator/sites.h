/* sites.h - from the functions of one file to the places of their probes */
#ifndef RECORD_SITES_H
#define RECORD_SITES_H

#include "record/allocator/allocator.h"
#include "record/module/elffile.h"

/* A function of @object that is to be probed with the programs of @kind. */
struct site_wanted {
	const char *name;
	uint32_t func; /* enum event_func */
	enum site_kind kind;
	unsigned int nr_args; /* that the programs look at */
	const struct elf_function *at;
};

/* Add the site of @w to @object; not if another name of the same function has one. */
void sites_add(struct alloc_object *object, const struct site_wanted *w);

/* Choose where in their functions the sites of @object, whose file is @elf, are. */
void sites_choose(struct alloc_object *object, Elf *elf);

/* Find the returns of all functions of @object, or if not @all of its operators new alone.  What
 * cannot be followed is left alone. */
void sites_find_returns(struct alloc_object *object, Elf *elf, bool all);

#endif
