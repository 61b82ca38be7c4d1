/* inject.h - the recorder's code in a process that runs: put there, and taken out again
 *
 * Nothing of the target's libraries is called.  Memory is mapped by system calls that a thread of
 * it makes; all threads stand for the moment in which the entries of functions are changed.  Why
 * it is done so is in doc/decisions/0058-code-put-into-a-running-process.md.
 */
#ifndef RECORD_INJECT_H
#define RECORD_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "record/allocator/allocator.h"
#include "record/inject/change.h"
#include "record/libpreload/ring.h"
#include "record/target/maps.h"

#define INJECT_WHY 256 /* bytes of a sentence's part that says why not, behind "it " */

struct inject; /* opaque: what one process gets */

/* Begin with process @pid: two files without names are made there.  *@out is NULL on failure, and
 * the reason in @why, INJECT_WHY bytes.  Returns 0 or -errno. */
int inject_open(struct inject **out, pid_t pid, char *why);

/* The empty file for the rings: a descriptor that becomes the caller's. */
int inject_rings(struct inject *i);

/* Change the entries of the functions @a, so that they write into the memory @rings of @bytes,
 * which is the file of inject_rings().  *@cost is what that cost, inject_open() too.  On failure
 * nothing is changed, and the reason is in @why.  Returns 0 or -errno. */
int inject_put(struct inject *i, const struct allocators *a, const struct preload_header *rings,
	       size_t bytes, struct inject_cost *cost, char *why);

/* Print which entries of @a, functions of process @pid, could be changed, and why others not.
 * Returns 0 or -errno. */
int inject_explain(FILE *out, pid_t pid, const struct allocators *a);

/* What inject_put() has mapped so far, and changed: as inject_remove(), of one's own. */
int inject_take_back(pid_t pid, struct inject_cost *cost, char *why);

/* Functions of a file that was loaded while it is recorded: plain data, for one who may do more. */
struct inject_library {
	uint64_t start, end, offset, inode; /* its executable mapping */
	uint32_t dev_major, dev_minor;
	uint32_t nr;
	struct inject_function {
		uint64_t function; /* where it begins in the file */
		uint64_t size;	   /* bytes; 0: not known */
		uint32_t func;	   /* enum event_func; 0 if it @tells */
		bool tells;	   /* the loader calls it when modules have come or gone */
		char name[40];
	} functions[ALLOCATOR_MAX_SITES];
};

/* Set @l to the functions of @o, with the names cut to fit. */
void inject_library_of(struct inject_library *l, const struct alloc_object *o);

/*
 * Change the functions of @l, too, in process @pid, where inject_put() has changed those before.
 * It may be one that was changed, unloaded and loaded again.  With no functions at all, what is
 * gone is forgotten, as it always is.  *@cost is what that cost, added to
 * what it was.  On failure none is changed.
 *
 * Returns 0; -ESTALE: it is not there any more; -ENOSPC: there are too many; or another -errno,
 * with the reason in @why.
 */
int inject_add(pid_t pid, const struct inject_library *l, struct inject_cost *cost, char *why);

/* Take what was put into a process out of @maps, its mappings: it is no module of the target's. */
void inject_leave_out(struct maps *maps);

/* NULL is allowed; what is in the process stays there. */
void inject_free(struct inject *i);

/* Has process @pid code of inject_put()'s?  False also where that cannot be said. */
bool inject_is_in(pid_t pid);

/* Take out of process @pid what inject_put() left there, this program's or another's that was
 * killed.  Returns 0, also if there is nothing; -EBUSY: its threads did not leave the code, which
 * only forwards calls from now on; or -errno, with the reason in @why.  What it costs is added to
 * *@cost. */
int inject_remove(pid_t pid, struct inject_cost *cost, char *why);

#endif
