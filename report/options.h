/* options.h - the command line of `mleak report` */
#ifndef REPORT_OPTIONS_H
#define REPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/view.h"

struct report_opts {
	const char *path; /* of the trace; borrowed from argv, as are the directories */
	bool folded;
	bool dump;	  /* print the trace itself */
	bool dump_stacks; /* and the bytes of its stacks */
	bool debuginfod;  /* look for debug information on the network, too */
	bool help;	  /* print the help and do nothing else */
	struct view_opts view;
	const char **debug_dirs; /* where debug information is looked for, in this order */
	size_t nr_debug_dirs;
	const char
		*symfs; /* files are looked for here first, as below a root; NULL: nowhere else */
	char *symfs_debug; /* the debug directory below it */
};

/*
 * Read the command line into *@opts, which is released with report_opts_release() in any case.
 * What is wrong with it is said on stderr.
 * Returns 0, -EINVAL for a wrong command line or -ENOMEM.
 */
int report_opts_parse(struct report_opts *opts, int argc, char **argv);

/* Print the help on stdout. */
void report_opts_print_help(void);

/* Release what @opts holds. */
void report_opts_release(struct report_opts *opts);

#endif
