/* debuginfod.c - see debuginfod.h */
#include "report/name/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mleak.h"

#define LIBRARY "libdebuginfod.so.1"

struct client; /* libdebuginfod's own */

typedef int progress_fn(struct client *client, long done, long total);

struct debuginfod {
	struct client *client;
	void (*end)(struct client *client);
	int (*find_debuginfo)(struct client *client, const unsigned char *build_id, int len,
			      char **path);
};

/* Called some times a second; anything but 0 would stop the transfer. */
static int show_progress(struct client *client, long done, long total)
{
	(void)client;
	if (total > 0)
		fprintf(stderr, "\rmleak: fetching debug information: %ld of %ld KiB ", done / 1024,
			total / 1024);
	else
		fprintf(stderr, "\rmleak: asking for debug information ");
	return 0;
}

/* Load the library's functions.  Returns whether all are there.  It stays loaded: the libraries it
 * needs hold memory until the process ends. */
static bool load(struct debuginfod *d)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct client *(*begin)(void);
	void (*set_progress)(struct client * client, progress_fn * progress);

	if (!library)
		return false;
	/* as POSIX has it: C knows no cast from an object to a function */
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&set_progress = dlsym(library, "debuginfod_set_progressfn");
	*(void **)&d->end = dlsym(library, "debuginfod_end");
	*(void **)&d->find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
	if (!begin || !set_progress || !d->end || !d->find_debuginfo)
		return false;
	d->client = begin();
	if (d->client && isatty(STDERR_FILENO))
		set_progress(d->client, show_progress);
	return d->client != NULL;
}

int debuginfod_new(struct debuginfod **out)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d;

	*out = NULL;
	if (!urls || !*urls) {
		log_error("--debuginfod needs the servers in DEBUGINFOD_URLS, as in 'export "
			  "DEBUGINFOD_URLS=https://debuginfod.debian.net'");
		return -EINVAL;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	if (!load(d)) {
		log_error("--debuginfod needs elfutils' " LIBRARY "; install libdebuginfod1");
		debuginfod_free(d);
		return -ENOENT;
	}
	*out = d;
	return 0;
}

char *debuginfod_fetch(void *debuginfod, const uint8_t *build_id, size_t len)
{
	struct debuginfod *d = debuginfod;
	char *path = NULL;
	int fd = len <= INT_MAX ? d->find_debuginfo(d->client, build_id, (int)len, &path) : -1;

	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}

void debuginfod_free(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	free(d);
}
