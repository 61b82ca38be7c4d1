/* plugin.c - plugin.so, the library that the samples dlopen and backtrace load */
#include "plugin.h"

static FRAME void leak_in_plugin(struct leak_sum *sum)
{
	void *block = malloc(LEAK_BYTES);

	leak_add(sum, block, LEAK_BYTES);
}

FRAME void plugin_run(struct leak_sum *sum)
{
	for (int i = 0; i < LEAK_BLOCKS; i++)
		leak_in_plugin(sum);
	AFTER_CALL();
}

/* Not static: the call to it goes through the library's PLT. */
FRAME void plugin_bottom(void (*allocate)(size_t bytes), size_t bytes)
{
	allocate(bytes);
	AFTER_CALL();
}

FRAME void plugin_deep(void (*allocate)(size_t bytes), size_t bytes)
{
	plugin_bottom(allocate, bytes);
	AFTER_CALL();
}
