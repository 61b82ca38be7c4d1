/* hindrance.h - why the preloaded library does not come up in a program, by the program's file */
#ifndef RECORD_HINDRANCE_H
#define RECORD_HINDRANCE_H

#include <stdbool.h>

#define HINDRANCE_RIGHTS                                                          \
	"it is set-user-id or has capabilities, so the loader preloads nothing; " \
	"record by eBPF, as root"

/* Why it does not in the program @fd, a regular file; @gains_rights: by it, its caller gets rights
 * that he had not.  NULL: it should, or it is not a program but a script, or cannot be read.  A
 * static text: a sentence without its full stop. */
const char *hindrance_of(int fd, bool gains_rights);

#endif
