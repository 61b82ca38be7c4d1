/* ctl_places.h - where the calls of a function return to, in a process that runs */
#ifndef RECORD_CTL_PLACES_H
#define RECORD_CTL_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Addresses in a process. */
struct ctl_place {
	uint64_t start, size;
};

#define CTL_MAX_PLACES 16 /* of a name in a process */

/*
 * The functions called @name in process @pid, into the CTL_MAX_PLACES @places: as the files name
 * them, or for C++ as people do, without arguments ("ns::fun"); all its copies that a compiler
 * made. With +0xN behind it, that address alone.
 *
 * Returns how many there are, with more than there is room only the first; or -errno: the process
 * cannot be looked at.
 */
int ctl_places_find(pid_t pid, const char *name, struct ctl_place *places);

#endif
