/* choice.h - what may be chosen while recording: what is recorded, and what is only counted */
#ifndef RECORD_CHOICE_H
#define RECORD_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHOICE_WHY  256 /* bytes of a sentence, with its NUL */
#define CHOICE_NAME 128 /* the same of a site's name; longer ones are cut */

#define CHOICE_LISTED  16   /* sites in a status */
#define CHOICE_MOST_UP 1023 /* of struct choice */

/* Of what something is chosen.  The narrower goes before the wider: a site before a thread, that
 * before a process, that before all. */
enum choice_of {
	CHOICE_ALL,	/* all that is recorded; what was chosen before is forgotten */
	CHOICE_THREAD,	/* tid */
	CHOICE_PROCESS, /* pid */
	CHOICE_SITE,	/* calls in pid that return to [start, start + size) */
	CHOICE_TRIGGER, /* how much must be outstanding */
	CHOICE_PASSAGE, /* nothing yet: in pid, calls that return to [start, start + size) are made
			   for the caller of that function, as sites of which they count, too */
};

/* Of what --trigger counts the outstanding bytes. */
enum choice_trigger { TRIGGER_THREAD, TRIGGER_PROCESS, TRIGGER_SITE, TRIGGER_NR };

#define TRIGGER_NEVER ((uint64_t)INT64_MAX)

/* One change, as `mleak ctl` asks for it; what @of does not need is 0. */
struct choice {
	enum choice_of of;
	bool recorded; /* from now on; else only counted, whatever the triggers say */
	pid_t pid, tid;
	uint64_t start, size;
	uint64_t up; /* of a passage: from the stack pointer there to the return address */
	char name[CHOICE_NAME]; /* of a site, as it was chosen; "": by its address */
	enum choice_trigger trigger;
	uint64_t bytes; /* of the trigger; TRIGGER_NEVER: it is never reached */
};

/* What a backend says for `mleak ctl PID --status`. */
struct choice_counts {
	bool can_choose;
	uint64_t threads; /* that are recorded, because they were chosen or reached a trigger */
	uint64_t trigger[TRIGGER_NR]; /* bytes; TRIGGER_NEVER: there is none */
	bool all;		      /* what is not chosen is recorded */
	uint64_t processes, sites;    /* of which something was chosen */
	struct choice_listed {	      /* the first of these sites */
		pid_t pid;
		uint64_t start, size;
		bool recorded;
	} listed[CHOICE_LISTED];
	size_t nr_listed;
};

#endif
