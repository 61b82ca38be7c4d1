/* twins.c - leaks in two libraries whose functions have the same names, called by one function
 *
 * twin_a.so is unloaded meanwhile, and is somewhere else when it is there again.  Other libraries
 * can be named in place of both: `twins FIRST SECOND`.
 */
#include <dlfcn.h>

#include "sample.h"

static FRAME void call_twin(const char *path, struct leak_sum *sum, int blocks, int keep_it)
{
	void *twin = dlopen(path, RTLD_NOW);
	void (*run)(struct leak_sum *, int);

	run = twin ? (void (*)(struct leak_sum *, int))dlsym(twin, "twin_run") : NULL;
	if (!run)
		_exit(1);
	run(sum, blocks);
	if (!keep_it)
		dlclose(twin);
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	struct leak_sum a = {0}, b = {0};
	char first[1024], second[1024];

	path_beside(first, sizeof(first), "twin_a.so");
	path_beside(second, sizeof(second), "twin_b.so");
	call_twin(argc > 2 ? argv[1] : first, &a, LEAK_BLOCKS, 0);
	call_twin(argc > 2 ? argv[2] : second, &b, 29, 1);
	call_twin(argc > 2 ? argv[1] : first, &a, 7, 1);
	answer(&a, "main;call_twin;twin_run [twin_a.so];init");
	answer(&b, "main;call_twin;twin_run [twin_b.so];init");
	return 0;
}
