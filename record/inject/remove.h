/* remove.h - for inject.c alone */
#ifndef RECORD_INJECT_REMOVE_H
#define RECORD_INJECT_REMOVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/inject/change.h"

/* As inject_take_back() with @own, else as inject_remove(), for a caller whose turn it is. */
int inject_remove_now(pid_t pid, bool own, struct inject_cost *cost, char *why);

#endif
