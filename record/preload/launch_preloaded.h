/* launch_preloaded.h - start a command with the preloaded library */
#ifndef RECORD_LAUNCH_PRELOADED_H
#define RECORD_LAUNCH_PRELOADED_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct preload_header;

/* What a command is started with: the library's path, and the memory that both share, borrowed. */
struct preload_child {
	char library[PATH_MAX];
	int memory;		       /* descriptor of what is shared */
	struct preload_header *header; /* the same, mapped */
};

/* Find the library beside this program, or where it is installed.  On failure one sentence was
 * logged.  Returns 0 or -errno. */
int preload_find_library(char *path, size_t size);

/* Start @argv as a child.  Returns 0, or the exit status to give after one sentence was logged:
 * 126, 127 or 125. */
int preload_start(const struct preload_child *child, char **argv, pid_t *pid);

#endif
