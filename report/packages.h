/* packages.h - which Debian package a file of this machine belongs to */
#ifndef REPORT_PACKAGES_H
#define REPORT_PACKAGES_H

#include <stddef.h>

/*
 * Ask dpkg for the packages of the @nr files at @paths, which are absolute.  names[i] becomes the
 * name of that of paths[i], without its architecture, to be released with free(); or NULL when
 * there is none, or no dpkg here.  Returns 0 or -ENOMEM; then all names are NULL.
 */
int packages_find(const char *const *paths, size_t nr, char **names);

#endif
