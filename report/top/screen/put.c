/* put.c - see put.h */
#include "report/top/screen/put.h"

#include <limits.h>
#include <ncurses.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

/* The columns that the character at @text takes, and in *@len its bytes. */
static int character(const char *text, int *len)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t nr = mbrtowc(&wide, text, strlen(text), &state);
	int columns;

	/* the locale may know no UTF-8 */
	*len = 1;
	if (nr == (size_t)-1 || nr == (size_t)-2 || !nr)
		return ((unsigned char)*text & 0xc0) != 0x80;
	*len = (int)nr;
	columns = wcwidth(wide);
	return columns < 0 ? 1 : columns;
}

int put_fit(const char *text, int columns, int *used)
{
	int bytes = 0, len, more;

	for (*used = 0; text[bytes]; bytes += len, *used += more) {
		more = character(text + bytes, &len);
		if (more > columns - *used)
			break;
	}
	return bytes;
}

int put_columns(const char *text)
{
	int used;

	put_fit(text, INT_MAX, &used);
	return used;
}

void put(struct pen *pen, int attributes, const char *format, ...)
{
	char text[PUT_MAX];
	va_list args;
	int bytes, used;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	bytes = put_fit(text, COLS - pen->x, &used);
	attron(attributes);
	mvaddnstr(pen->y, pen->x, text, bytes);
	attroff(attributes);
	pen->x += used;
}
