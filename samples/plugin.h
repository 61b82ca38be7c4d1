/* plugin.h - what plugin.so offers to dlopen and backtrace */
#ifndef PLUGIN_H
#define PLUGIN_H

#include "sample.h"

/* Leak LEAK_BLOCKS blocks along plugin_run;leak_in_plugin. */
void plugin_run(struct leak_sum *sum);

/* Call @allocate(@bytes) from below frames of the library, the last of them reached by its PLT. */
void plugin_deep(void (*allocate)(size_t bytes), size_t bytes);

#endif
