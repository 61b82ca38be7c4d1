/* root_choice.h - memory that holds blocks because the user says so */
#ifndef REPORT_ROOT_CHOICE_H
#define REPORT_ROOT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* What was chosen, and whether there is such memory. */
struct root_choice {
	const char *text;    /* as it was given; borrowed */
	bool named;	     /* the text is the name of a variable; else a range: */
	uint64_t start, end; /* [start, end) */
	bool found;	     /* set by who looks: it is in memory that was read */
};

#endif
