/* color.h - what text for a terminal has: escape sequences, and lines between functions */
#ifndef REPORT_COLOR_H
#define REPORT_COLOR_H

#include <stdbool.h>
#include <stddef.h>

/* What text means: how it looks is color_of()'s. */
enum color { COLOR_NONE, COLOR_END, COLOR_HEAVY, COLOR_NAME, COLOR_PLACE, COLOR_REMARK };

/* What begins @color, or ends all; "" for COLOR_NONE, or unless @wanted. */
const char *color_of(bool wanted, enum color color);

/* When there are colours: see color_wanted(). */
enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Whether there are to be colours on stdout.  Without being told, if it is a terminal that is not
 * dumb, and NO_COLOR (https://no-color.org) is not set or empty. */
bool color_wanted(enum color_mode mode);

/* How many columns stdout has when it is a terminal; 0: it is none, or does not say. */
size_t color_columns(void);

/* How many lines a report may have on stdout without being told: some screens of a terminal; 0: it
 * is none, or a file. */
size_t color_rows(void);

/* Of what the lines of a tree are made: see lines_utf8(). */
enum lines_mode { LINES_AUTO, LINES_UTF8, LINES_ASCII };

/* Whether lines are to be drawn by characters of UTF-8.  Without being told, if stdout is a
 * terminal and the locale (LC_ALL, LC_CTYPE or LANG, the first that is set) says that it knows
 * them. */
bool lines_utf8(enum lines_mode mode);

#endif
