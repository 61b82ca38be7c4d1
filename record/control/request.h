/* request.h - what `mleak ctl` asks a recorder for: a line of text in each message */
#ifndef RECORD_CONTROL_REQUEST_H
#define RECORD_CONTROL_REQUEST_H

#include <stddef.h>

#include "record/filter/choice.h"

/* The line is one of:
 *
 *	status                        what is recorded, for people
 *	pids                          the processes that are recorded
 *	records PID                   is that process one of them?
 *	all MODE                      MODE: recorded or counted
 *	thread TID MODE
 *	process PID MODE
 *	site PID START SIZE MODE [NAME]     in hexadecimal
 *	passage PID START SIZE UP     the same: see struct choice
 *	trigger KIND BYTES            KIND: thread, process or site; BYTES: a number, or none
 *	mark [TEXT]
 *	switch                        begin another trace
 *	reach                         read the pointers in memory now
 *
 * The answer begins with "ok " or "no ", and goes on with text: what was asked for, or a sentence.
 */
enum control_verb {
	CONTROL_STATUS,
	CONTROL_PIDS,
	CONTROL_RECORDS,
	CONTROL_CHOOSE,
	CONTROL_MARK,
	CONTROL_SWITCH,
	CONTROL_REACH,
};

#define CONTROL_MAX_MARK 200 /* bytes of a mark's text */

/* A request that is understood. */
struct control_request {
	enum control_verb verb;
	struct choice choice; /* CONTROL_CHOOSE; CONTROL_RECORDS: its pid */
	char text[CONTROL_MAX_MARK + 1];
};

/* Understand the @len bytes at @line, whatever they are.  Returns 0, or -EINVAL: it is no such
 * line. */
int control_parse(struct control_request *r, const char *line, size_t len);

#endif
