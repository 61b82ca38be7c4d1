/* put.h - text on the screen, cut at its right edge */
#ifndef REPORT_PUT_H
#define REPORT_PUT_H

#define PUT_MAX 1024 /* bytes of a text */

/* Where the next text goes: what reaches the edge does not go on in the next line. */
struct pen {
	int y, x;
};

/* Put what @format makes at @pen, which moves behind it, with @attributes as of attron(3) besides
 * those that are on. */
void put(struct pen *pen, int attributes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* How many bytes of @text, which is UTF-8, take at most @columns; *@used is how many they take. */
int put_fit(const char *text, int columns, int *used);

/* How many columns @text takes. */
int put_columns(const char *text);

#endif
