/* dpkg.h - which Debian package a file of this machine belongs to
 *
 * The lists of files that dpkg keeps are read, as `dpkg -S` does, which takes several times as
 * long.
 */
#ifndef REPORT_DPKG_H
#define REPORT_DPKG_H

#include <stddef.h>

#define DPKG_LISTS "/var/lib/dpkg/info" /* PACKAGE.list or PACKAGE:ARCHITECTURE.list, for each */

struct dpkg; /* opaque: a question that was asked */

/*
 * Ask the lists in folder @lists (DPKG_LISTS) for the packages of the @nr files at @paths, which
 * are absolute and, as @lists, borrowed until dpkg_read(): a thread looks for them meanwhile.
 * *@out is NULL on failure.  Returns 0 or -ENOMEM.
 */
int dpkg_ask(struct dpkg **out, const char *lists, const char *const *paths, size_t nr);

/* Wait for the answer, and release @packages; NULL is allowed, with @names NULL.  names[i] becomes
 * the name of the package of paths[i], without its architecture, to be released with free(); or
 * NULL when there is none, or no dpkg here.  Of several, it is the first by its name.  With @names
 * NULL the result is not needed any more.  Returns 0 or -ENOMEM; then all names are NULL. */
int dpkg_read(struct dpkg *packages, char **names);

#endif
