/* alloc_functions.h - the functions that are looked for in an allocator's object, and the places
 * where their probes stand */
#ifndef RECORD_ALLOC_FUNCTIONS_H
#define RECORD_ALLOC_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/allocator/allocator.h"
#include "record/module/elffile.h"

/* WANTED_OWN counts only where malloc is: elsewhere it is another's. */
enum alloc_functions_group { WANTED_C, WANTED_MAP, WANTED_OWN };

/* A function that is looked for by its name, and how it is probed when it is found. */
struct alloc_function {
	const char *name;
	uint32_t func; /* enum event_func */
	enum site_kind kind;
	unsigned int nr_args;
	enum alloc_functions_group group;
};

#define WANTED_NR     43
#define WANTED_MALLOC 0 /* where the table has it */
#define WANTED_FREE   1

/* An operator comes behind those that it calls. */
extern const struct alloc_function wanted[WANTED_NR];

_Static_assert(WANTED_NR <= ALLOCATOR_MAX_SITES, "room for all");

/* Is wanted[@i] one of C++'s operators new and delete? */
bool alloc_functions_is_operator(size_t i);

/*
 * An allocator's own operator new does the work by itself. libstdc++'s, which is beside malloc in a
 * statically linked program, calls malloc: a probe on it would show nothing more, and the program
 * would be aborted by an exception that passes it.
 *
 * Take those operators out of @found (of @elf, as wanted[] has them) that call what else is found
 * there.  Returns true if these are all.
 */
bool cxx_operators_leave(Elf *elf, struct elf_function *found);

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

/* The functions that get no return probe. */
enum sites_by_ret {
	SITES_OPERATORS, /* operators new */
	SITES_FOLLOWED,	 /* these, and all others whose code can be followed */
	SITES_ALL,
};

/* Which functions of the allocator @elf no return probe may be seen by.  Those of a sanitizer look
 * at their return addresses, for the stacks in its own reports. */
enum sites_by_ret sites_without_probe(Elf *elf);

/* Find the returns of the functions @which of @object.  What cannot be followed is left alone. */
void sites_find_returns(struct alloc_object *object, Elf *elf, enum sites_by_ret which);

#endif
