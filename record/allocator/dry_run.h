/* dry_run.h - what would be probed, where and why, for people */
#ifndef RECORD_DRY_RUN_H
#define RECORD_DRY_RUN_H

#include <stdio.h>

#include "record/allocator/allocator.h"

/* Print the sites of @a to @out. */
void dry_run_print(FILE *out, const struct target *t, const struct allocators *a);

#endif
