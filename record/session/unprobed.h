/* unprobed.h - allocators that a recorded process has beside the one that is probed */
#ifndef RECORD_UNPROBED_H
#define RECORD_UNPROBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNPROBED_TOLD 8

struct session;

/* The files of those that were named. */
struct unprobed {
	uint64_t inodes[UNPROBED_TOLD];
	size_t nr;
	bool told_past; /* of libraries whose calls go past the preloaded one */
};

/* Name those that are mapped now: a plugin that was loaded with one of its own (RTLD_DEEPBIND,
 * dlmopen, -Bsymbolic) may call it, which nothing else tells as soon as there is any other event.
 * Each is named once; nothing of a recording by injected code, which records them.  So are
 * libraries that call the C library past the preloaded one. */
void unprobed_tell(struct session *s);

#endif
