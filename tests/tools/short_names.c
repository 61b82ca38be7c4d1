/* short_names.c - names of functions as a report shows them, for tests to compare with their source
 *
 * short_names [COLUMNS] < NAMES
 *
 * NAMES are demangled, a line each; for each a line with its short name, or with the one that fits
 * into so many columns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/name/short_name.h"

int main(int argc, char **argv)
{
	size_t columns = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, room = 0;
	char *line = NULL;

	while (getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		name_print(stdout, line, columns);
		putchar('\n');
	}
	free(line);
	return 0;
}
