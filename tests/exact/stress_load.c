/* stress_load.c - libraries that come and go, two of them at the same address */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stress.h"

static void *library;

/* @name beside this program. */
static void *load(const char *name)
{
	char path[PATH_MAX] = "";
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[len < 0 ? 0 : len] = '\0';
	slash = strrchr(path, '/');
	must(slash && strlen(name) < sizeof(path) - (size_t)(slash - path) - 1, "own path");
	strcpy(slash + 1, name);
	library = dlopen(path, RTLD_LAZY);
	must(library != NULL, "dlopen");
	return library;
}

static void *symbol(const char *name)
{
	void *found = dlsym(library, name);

	must(found != NULL, name);
	return found;
}

static void call(const char *name, void (*fn)(void))
{
	((void (*)(void (*)(void)))symbol(name))(fn);
}

/* Returns where @name was loaded. */
static FRAME ElfW(Addr) load_and_call(const char *name)
{
	struct link_map *map = load(name);
	ElfW(Addr) base = map->l_addr;

	call("plugin_call", allocate);
	call("plugin_set", allocate);
	call("plugin_use_ifunc", allocate);	    /* its resolver runs under the lazy binding */
	((void (*)(void))symbol("plugin_ifunc"))(); /* and under dlsym() */
	dlclose(library);
	return base;
}

void load_bind(void (*before_and_after)(void))
{
	load("stress_a.so");
	call("plugin_bind", before_and_after);
	dlclose(library);
}

void stress_plugins(void)
{
	int same = 0;

	for (int i = 0; i < 10; i++)
		same += load_and_call("stress_a.so") == load_and_call("stress_b.so");
	printf("two libraries at the same address: %d of 10 times\n", same);
	fflush(stdout);
}
