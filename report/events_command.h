/* events_command.h - what the commands that print a trace as it is have in common */
#ifndef REPORT_EVENTS_COMMAND_H
#define REPORT_EVENTS_COMMAND_H

#include "format/reader.h"
#include "mleak.h"

/* Such a command. */
struct events_command {
	option_rows *rows; /* --help, and perhaps --follow */
	const char *help;  /* before the options */
	bool warns;	   /* of events that are missing: they have no lines */
	/* Print @trace on stdout; @follow: as long as it grows.  Returns 0, -ENOMEM or -errno of
	 * read(2). */
	int (*print)(struct mlk_reader *trace, bool follow);
};

/* Open the one trace that is named, and let @command print it.  Returns the exit status; where it
 * is not EXIT_OK, it has been said why. */
int events_command(int argc, char **argv, const struct events_command *command);

#endif
