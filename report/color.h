/* color.h - which escape sequences text for a terminal has */
#ifndef REPORT_COLOR_H
#define REPORT_COLOR_H

#include <stdbool.h>

enum color { COLOR_NONE, COLOR_END, COLOR_HEAVY, COLOR_NAME, COLOR_PLACE, COLOR_REMARK };

/* What begins @color, or ends all; "" for COLOR_NONE, or unless @wanted. */
const char *color_of(bool wanted, enum color color);

/* When there are colours: see color_wanted(). */
enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The mode called @name (auto, always, never) to *@mode.  Returns 0 or -EINVAL. */
int color_parse(const char *name, enum color_mode *mode);

/* Whether there are to be colours on stdout.  Without being told, if it is a terminal that is not
 * dumb, and NO_COLOR (https://no-color.org) is not set or empty. */
bool color_wanted(enum color_mode mode);

#endif
