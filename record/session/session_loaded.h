/* session_loaded.h - allocators that are loaded while a process is recorded by code that was put
 * there, or that only a part of it uses */
#ifndef RECORD_SESSION_LOADED_H
#define RECORD_SESSION_LOADED_H

#include <stddef.h>
#include <stdint.h>

#include "record/target/maps.h"

struct loaded_file;
struct process;
struct session;

/* Files with code in a process into which code was put: those that were looked at. */
struct session_loaded {
	struct loaded_file *v;
	size_t nr, room;
	uint64_t refused[64]; /* inodes of those that cannot be recorded, the last ones */
	size_t nr_refused;    /* ever */
};

/* Change the functions of those in @maps, all that @p has mapped, that are not changed yet.  What
 * goes wrong is logged, and counted. */
void session_look_for_allocators(struct session *s, struct process *p, const struct maps *maps);

/* The first time, with all that @p has mapped; from now on the loader tells of more. */
void session_begin_to_look(struct session *s, struct process *p);

#endif
