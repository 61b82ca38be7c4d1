/* color.c - see color.h */
#include "report/terminal/color.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

const char *color_of(bool wanted, enum color color)
{
	static const char *const sequences[] = {
		[COLOR_NONE] = "",	   [COLOR_END] = "\033[0m",   [COLOR_HEAVY] = "\033[1;31m",
		[COLOR_NAME] = "\033[36m", [COLOR_PLACE] = "\033[2m", [COLOR_REMARK] = "\033[33m",
	};

	return wanted ? sequences[color] : "";
}

bool color_wanted(enum color_mode mode)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (mode != COLOR_AUTO)
		return mode == COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term &&
	       strcmp(term, "dumb") != 0;
}

size_t color_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

#define SCREENS	   4
#define LEAST_ROWS 100

size_t color_rows(void)
{
	struct winsize size;
	size_t rows;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	rows = SCREENS * (size_t)size.ws_row;
	return rows > LEAST_ROWS ? rows : LEAST_ROWS;
}

bool lines_utf8(enum lines_mode mode)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *locale = NULL;

	if (mode != LINES_AUTO)
		return mode == LINES_UTF8;
	for (size_t i = 0; i < 3 && (!locale || !*locale); i++)
		locale = getenv(variables[i]);
	return isatty(STDOUT_FILENO) && locale &&
	       (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}
