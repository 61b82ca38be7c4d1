/* scratch.h - a folder for the files of a test program
 *
 * The file that includes it has "static char scratch[]", a pattern of mkdtemp(3).
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state)
{
	(void)state;
	return mkdtemp(scratch) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

#endif
