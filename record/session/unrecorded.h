/* unrecorded.h - programs and processes that should have been recorded and were not */
#ifndef RECORD_UNRECORDED_H
#define RECORD_UNRECORDED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MISSED_NAMED 3

/* How many, and the first by name. */
struct unrecorded {
	uint64_t nr;
	unsigned int told; /* children of which was said at once why they cannot be recorded */
	struct {
		pid_t pid;
		char name[16];
		const char *why; /* static text, behind "it" */
	} first[MISSED_NAMED];
};

/* Process @pid, @name (may be "", is copied), should have been recorded; @why is static text. */
void unrecorded_note(struct unrecorded *m, pid_t pid, const char *name, const char *why);

/* Was that said of as many children as are named? */
bool unrecorded_is_full(const struct unrecorded *m);

/* It was said of one more; says that it was the last, if it was. */
void unrecorded_reported(struct unrecorded *m);

/* Log which they are, if there are any. */
void unrecorded_report(const struct unrecorded *m);

#endif
