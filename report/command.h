/* command.h - what commands with the options of a report have in common */
#ifndef REPORT_COMMAND_H
#define REPORT_COMMAND_H

#include "report/options/options.h"

/* Read the command line, and print the help or have @run do what it asks for, as its exit status
 * says.  Returns the exit status; where it is not EXIT_OK, it has been said why. */
int command_run(int argc, char **argv, int (*run)(const struct report_opts *opts));

#endif
