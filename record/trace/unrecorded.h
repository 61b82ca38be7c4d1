/* unrecorded.h - programs and processes that should have been recorded and were not: the first by name
 */
#ifndef RECORD_MISSED_H
#define RECORD_MISSED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MISSED_NAMED 3

struct missed {
	uint64_t nr;
	unsigned int told; /* children of which was said at once why they cannot be recorded */
	struct {
		pid_t pid;
		char name[16];
		const char *why; /* static text, behind "it" */
	} first[MISSED_NAMED];
};

/* Count @pid, called @name ("": not known); @why is static text that goes on after "it ". */
void missed_note(struct missed *m, pid_t pid, const char *name, const char *why);

/* Was that said of as many children as are named? */
bool missed_hushes(const struct missed *m);

/* It was said of one more; says that it was the last, if it was. */
void missed_told(struct missed *m);

/* Log which they are, if there are any. */
void missed_tell(const struct missed *m);

#endif
