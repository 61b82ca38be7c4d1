/* gzip.h - write bytes compressed by gzip */
#ifndef REPORT_GZIP_H
#define REPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

/* Write the @len bytes at @bytes to @out as one gzip member, the same for the same bytes.  Errors
 * of writing are left in @out for ferror().  Returns 0 or -ENOMEM. */
int gzip_write(FILE *out, const void *bytes, size_t len);

#endif
