/* ctl_places.h - where the calls of a function return to, in a process that runs */
#ifndef RECORD_CTL_PLACES_H
#define RECORD_CTL_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/module/elffile.h"
#include "record/target/target.h"

/* Addresses in a process. */
struct ctl_place {
	uint64_t start, size;
};

#define CTL_MAX_PLACES 16 /* of a name in a process */

/*
 * The functions called @name in process @pid, into the CTL_MAX_PLACES @places: as the files name
 * them, or for C++ as people do ("ns::fun", or one of several as "ns::fun(int)"); all its copies
 * that a compiler made. With +0xN behind it, that address alone.
 *
 * Returns how many there are, with more than there is room only the first; or -errno: the process
 * cannot be looked at.
 */
int ctl_places_find(pid_t pid, const char *name, struct ctl_place *places);

/* Called for @elf, of which code is mapped at @m in the process @t. */
typedef void ctl_visit_fn(void *ctx, Elf *elf, const struct target *t, const struct mlk_mapping *m);

/* Call @visit for each mapping of code of process @pid whose file can be read.  Returns 0 or -errno
 * as ctl_places_find(). */
int ctl_visit_files(pid_t pid, ctl_visit_fn *visit, void *ctx);

#endif
