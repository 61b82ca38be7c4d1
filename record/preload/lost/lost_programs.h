/* lost_programs.h - which programs and processes were not recorded, and why */
#ifndef RECORD_LOST_PROGRAMS_H
#define RECORD_LOST_PROGRAMS_H

#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"

#define LOST_PROGRAMS_MAX 64u /* that are named */

/* One by its name; all zero: none. */
struct lost_program {
	char name[PRELOAD_BEGUN_NAME];
	const char *why; /* static */
	uint64_t nr;
};

/* All zero: none was lost. */
struct lost_programs {
	struct lost_program all[LOST_PROGRAMS_MAX];
	uint32_t nr;
	/* Of each name in the memory, when it was looked at: its state's upper half and 1; and what
	 * its file said then. */
	struct {
		uint64_t number;
		const char *why;
	} seen[PRELOAD_MAX_BEGUN];
};

/* Process @pid runs a program that nothing in the memory tells of; @program: its file as O_PATH, or
 * negative; borrowed. */
void lost_programs_note(struct lost_programs *lost, pid_t pid, int program);

/* Look at the files of programs that were begun and have not come yet, as long as they are there.
 */
void lost_programs_look(struct lost_programs *lost, const struct preload_header *memory);

/* Nothing comes any more: warn of each, by what the memory says, too. */
void lost_programs_tell(struct lost_programs *lost, const struct preload_header *memory);

#endif
