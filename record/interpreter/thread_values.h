/* thread_values.h - where threads of a process have their values of pthread_getspecific(3) */
#ifndef RECORD_THREAD_VALUES_H
#define RECORD_THREAD_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/target/target.h"

/* Is the file of @m one that may tell it, by its name? */
bool thread_values_is_likely(const struct mlk_mapping *m);

/*
 * How many bytes behind a thread's control block the addresses of its blocks of values begin, as
 * the C library that @t has mapped at @m tells debuggers: glibc's nptl_db/structs.def.  0: it does
 * not.
 */
uint16_t thread_values_find(const struct target *t, const struct mlk_mapping *m);

#endif
