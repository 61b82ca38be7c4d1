/* begun.h - the names of programs that are to be recorded, until they are */
#ifndef LIBPRELOAD_PROCESS_BEGUN_H
#define LIBPRELOAD_PROCESS_BEGUN_H

#include <stdbool.h>
#include <stdint.h>

#include "record/libpreload/ring.h"

/* What a caller of exec says that is to begin. */
struct begun_program {
	const char *path; /* from @dir on; "" is @dir itself */
	int dir;	  /* a descriptor, or AT_FDCWD */
	bool search;	  /* along PATH, unless it has a slash */
};

/* It begins in this process, or in a child.  Returns what begun_undo() takes and the environment
 * tells the program, 0: there is no room for another name.  Works in a child of vfork, too. */
uint64_t begun_note(struct preload_header *h, const struct begun_program *program);

/* It did not begin. */
void begun_undo(struct preload_header *h, uint64_t note);

/* It may not come, because of @why, of enum preload_why. */
void begun_doubt(struct preload_header *h, uint64_t note, uint32_t why);

/* Is what was begun with @note another file than the one that runs here? */
bool begun_is_other(struct preload_header *h, uint64_t note);

/* The program that runs here was begun with @note. */
void begun_is(uint64_t note);

/* It has come up, and may be recorded; if it is, begun_is(0) follows. */
void begun_came(struct preload_header *h);

/* It is not recorded, because of @why; or this process is not, a child of one that is. */
void begun_lost(struct preload_header *h, uint32_t why);

/* Has this process, and what it begins, other numbers than the recorder knows? */
bool begun_elsewhere(void);

/* It could not map the memory, which may be open as @fd.  Says so there, if that is for want of
 * addresses; @counted: its start was. */
void begun_unmapped(int fd, uint64_t nonce, bool counted);

#endif
