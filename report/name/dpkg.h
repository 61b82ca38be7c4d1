/* dpkg.h - which Debian package a file of this machine belongs to */
#ifndef REPORT_DPKG_H
#define REPORT_DPKG_H

#include <stddef.h>

struct dpkg; /* opaque: a question that was asked */

/*
 * Ask dpkg for the packages of the @nr files at @paths, which are absolute and borrowed until
 * dpkg_read(): it works on its answer meanwhile.  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM.
 */
int dpkg_ask(struct dpkg **out, const char *const *paths, size_t nr);

/* Wait for the answer, and release @packages; NULL is allowed, with @names NULL. names[i] becomes
 * the name of the package of paths[i], without its architecture, to be released with free(); or
 * NULL when there is none, or no dpkg here.  With @names NULL the result is not needed any more.
 * Returns 0 or -ENOMEM; then all names are NULL. */
int dpkg_read(struct dpkg *packages, char **names);

#endif
