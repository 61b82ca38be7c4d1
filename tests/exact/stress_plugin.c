/* stress_plugin.c - stress_a.so and stress_b.so: the same but for the size of their frames */
#include <stdlib.h>
#include <string.h>

#include "stress.h"

static void (*hook)(void);

FRAME void plugin_bottom(void (*fn)(void))
{
	char block[FRAME_BYTES];

	KEEP(block);
	fn();
	KEEP(block);
}

/* Its call goes through the PLT. */
FRAME void plugin_call(void (*fn)(void))
{
	char block[FRAME_BYTES * 2];

	KEEP(block);
	plugin_bottom(fn);
	KEEP(block);
}

void plugin_set(void (*fn)(void))
{
	hook = fn;
}

static void call_hook(void)
{
	plugin_bottom(hook);
	AFTER_CALL();
}

static void (*resolve(void))(void)
{
	if (hook)
		plugin_bottom(hook);
	return call_hook;
}

void plugin_ifunc(void) __attribute__((ifunc("resolve")));

void plugin_use_ifunc(void (*fn)(void))
{
	plugin_ifunc();
	fn();
	AFTER_CALL();
}

static int compare(const void *a, const void *b)
{
	return abs(*(const int *)a) - abs(*(const int *)b);
}

/* Functions that were not called before, so that each call binds one. */
void plugin_bind(void (*before_and_after)(void))
{
	int numbers[4] = {4, 3, 2, 1};
	char text[16];

	before_and_after();
	KEEP(ffs(rand()));
	strcpy(text, "12");
	KEEP(strtol(text, NULL, 10));
	qsort(numbers, 4, sizeof(int), compare);
	before_and_after();
}
