/* help.c - the options of a command for --help */
#include <stdio.h>
#include <string.h>

#include "cmdline/options.h"

enum { HELP_COLUMN = 27, HELP_WIDTH = 96 };

/* The length of what stands on one line from @text on: a word, and any option behind it, for a line
 * that begins with one would look like the next option's. */
static size_t unbroken(const char *text)
{
	size_t len = strcspn(text, " ");

	while (text[len] && text[len + 1] == '-')
		len += 1 + strcspn(text + len + 1, " ");
	return len;
}

/* Print @text from HELP_COLUMN on, where the cursor is in @column. */
static void print_wrapped(const char *text, size_t column)
{
	if (column + 2 > HELP_COLUMN) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", (int)(HELP_COLUMN - column), "");
	column = HELP_COLUMN;
	while (*text) {
		size_t len = unbroken(text);

		if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

void print_options(option_rows *rows)
{
	struct option_info o;

	for (size_t i = 0; rows(i, &o); i++) {
		bool apart = o.arg && *o.arg != '[';
		int column;

		if (o.group)
			printf("%s%s:\n", i ? "\n" : "", o.group);
		column = option_letter(&o) ? printf("  -%c, ", o.key) : printf("      ");
		column += printf("--%s%s%s", o.name, apart ? " " : "", o.arg ? o.arg : "");
		print_wrapped(o.help, (size_t)column);
	}
}
