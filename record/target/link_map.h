/* link_map.h - the program and the libraries of a process in the order in which names are looked up
 */
#ifndef RECORD_LINK_MAP_H
#define RECORD_LINK_MAP_H

#include "record/target/maps.h"
#include "record/target/target.h"

/* The program and its libraries; the array v is owned, the mappings are those of a struct maps. */
struct loaded_objects {
	const struct mlk_mapping **v; /* the executable mapping of each, first looked up first */
	size_t nr, room;
	const struct mlk_mapping *program; /* NULL: not known */
	const struct mlk_mapping *loader;  /* NULL: statically linked */
	bool guessed; /* the loader's list could not be read: the order is that of addresses */
};

/* List the objects of @t, whose mappings are @maps; they are borrowed.  link_map_release() in any
 * case.  Returns 0 or -ENOMEM. */
int link_map_read(struct loaded_objects *objects, const struct target *t, const struct maps *maps);

/* Has the loader not come to the program's own libraries yet?  The auditors of LD_AUDIT come first,
 * and debuggers are told of them, too. */
bool link_map_is_early(const struct target *t);

/* Has the loader mapped and relocated all that the program starts with?  @unknown is the answer
 * when it does not tell. */
bool link_map_complete(const struct target *t, bool unknown);

/* The address of the function that the loader calls whenever it begins to change the list, and when
 * it has: for debuggers.  0: it is not known. */
uint64_t link_map_teller(const struct target *t);

/* Forget the list; the mappings stay. */
void link_map_release(struct loaded_objects *objects);

/* AT_PHDR, AT_PHNUM, AT_ENTRY or AT_BASE of the target, from its mappings and its memory: the file
 * /proc/PID/auxv is its owner's.  0: it has none, or it cannot be determined. */
uint64_t auxv_guess(const struct target *t, uint64_t type);

#endif
