/* wrap_flags.c - how a program is linked with libmleak-wrap.a */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "record/preload/launch_preloaded.h"

#ifndef WRAPPED
#define WRAPPED "malloc free" /* build.mk of libpreload gives all */
#endif

int print_wrap_flags(void)
{
	char path[PATH_MAX];

	if (preload_find_file("libmleak-wrap.a", path, sizeof(path)))
		return EXIT_FAILED;
	if (strpbrk(path, " \t\n")) {
		log_error("the path '%s' has a space, at which a shell would split it", path);
		return EXIT_FAILED;
	}
	for (const char *name = WRAPPED; *name; name += strspn(name, " ")) {
		int len = (int)strcspn(name, " ");

		printf("-Wl,--wrap=%.*s ", len, name);
		name += len;
	}
	/* Else a program that calls none of them, but the C library does, would not get them. */
	printf("-Wl,-u,__wrap_malloc %s\n", path);
	return EXIT_OK;
}
