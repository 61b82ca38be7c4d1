/* file.h - open files whose paths come from a trace */
#ifndef DWUNW_FILE_H
#define DWUNW_FILE_H

#include <stddef.h>

/* No ELF file that is larger is read. */
#define DWUNW_MAX_FILE ((size_t)1 << 30)

/*
 * Open @path for reading if it is a regular file that is neither empty nor larger than
 * DWUNW_MAX_FILE, and not below /proc, /sys or /dev, be it by symbolic links.  Returns the
 * descriptor, which the caller closes, with the size in *size; or -1.
 */
int dwunw_file_open(const char *path, size_t *size);

#endif
