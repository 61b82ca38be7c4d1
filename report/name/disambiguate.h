/* disambiguate.h - functions of one name in several modules: what is said of each to distinguish
 * them
 */
#ifndef REPORT_DISAMBIGUATE_H
#define REPORT_DISAMBIGUATE_H

#include <stddef.h>
#include <stdint.h>

/* One of several functions that are shown side by side; its strings are borrowed. */
struct namesake {
	const char *name;
	const char *module; /* path, distinct from others; "" for what is not of code */
	const char *told;   /* of the module: its file name, its path, or NULL: nothing need be */
	uint32_t number;    /* the caller's */
};

/*
 * Set what is shown of each of @all, and sort them; no two have the same name and module.  Of those
 * whose name others have, too, it is the name of the module's file, or where that is the same, too,
 * the path.
 */
void disambiguate(struct namesake *all, size_t nr);

#endif
