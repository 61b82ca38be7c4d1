/* begun.h - programs that were begun and have not come, by name
 *
 * What begins a program by exec counts it at its name, and what records it takes that back.  So
 * what stays, at the end, was not recorded.  A name to which nothing counts may be overwritten.
 */
#ifndef LIBPRELOAD_BEGUN_H
#define LIBPRELOAD_BEGUN_H

#include <stdint.h>

#define PRELOAD_MAX_BEGUN  32u
#define PRELOAD_BEGUN_NAME 472u /* bytes, the last of which is 0 */

/* Why a program was not recorded, as far as the library knows. */
enum preload_why {
	PRELOAD_WHY_UNKNOWN,
	/* what begins it says; if it is not known better */
	PRELOAD_WHY_CLOSED,  /* nobody could hand the memory on to another user's */
	PRELOAD_WHY_NO_ROOM, /* there was no memory for its environment */
	PRELOAD_WHY_CONFINED,
	/* it says itself */
	PRELOAD_WHY_ADDRESSES, /* it has none for the memory */
	PRELOAD_WHY_NAMESPACE, /* it has another number for itself */
	PRELOAD_WHY_FULL,      /* there was no slot */
	PRELOAD_WHY_LATE,      /* the recorder did not answer */
	PRELOAD_WHY_CLOCK,
	/* the recorder told it */
	PRELOAD_WHY_DESCRIPTORS, /* it has none to watch it */
	PRELOAD_WHY_FORBIDDEN,	 /* it may not examine it */
	PRELOAD_WHY_UNEXAMINED,
	PRELOAD_NR_WHYS,
};

/* What is true of one that was begun, and perhaps of no other of that name. */
enum preload_begun_how {
	PRELOAD_BEGUN_SETS_ID = 1,  /* it has another user or group than its caller */
	PRELOAD_BEGUN_NOT_ROOT = 2, /* so its file's capabilities are more than its caller's */
};

#define PRELOAD_BEGUN_COUNT  0x7fffffffu /* bits of state: how many have not come */
#define PRELOAD_BEGUN_NAMING 0x80000000u /* somebody writes the name */

/* One name; all of it the target writes. */
struct preload_begun {
	uint64_t state;	     /* as above; and in the upper half how often the name was another */
	uint32_t why;	     /* enum preload_why */
	uint32_t how;	     /* enum preload_begun_how */
	uint64_t dev, inode; /* of the file, when it was begun; 0 and 0: not known */
	uint32_t pid;	     /* of the last one; 0: not known */
	uint32_t unused;
	char name[PRELOAD_BEGUN_NAME]; /* as a path, if it could be found */
};

_Static_assert(sizeof(struct preload_begun) == 512, "whole cache lines");

#endif
