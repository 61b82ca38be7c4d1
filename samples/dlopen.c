/* dlopen.c - a leak inside a library that is loaded at run time
 *
 * With the argument "close" the library is gone again when the program ends.
 */
#include <dlfcn.h>

#include "plugin.h"

static FRAME void call_plugin(void (*run)(struct leak_sum *), struct leak_sum *sum)
{
	run(sum);
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	struct leak_sum sum = {0};
	void (*run)(struct leak_sum *);
	char path[1024];
	void *plugin;

	path_beside(path, sizeof(path), "plugin.so");
	plugin = dlopen(path, RTLD_NOW);
	if (!plugin)
		return 1;
	run = (void (*)(struct leak_sum *))dlsym(plugin, "plugin_run");
	if (!run)
		return 1;
	call_plugin(run, &sum);
	if (argc > 1 && strcmp(argv[1], "close") == 0)
		dlclose(plugin);
	answer(&sum, "main;call_plugin;plugin_run;leak_in_plugin");
	return 0;
}
