/* dump.h - `mleak report --dump`: everything in a trace, as text */
#ifndef REPORT_DUMP_H
#define REPORT_DUMP_H

#include <stdbool.h>
#include <stdio.h>

#include "format/reader.h"

/*
 * Print to @out one line for the file header, one for each chunk, and one for each record below it
 * (a snapshot of mappings: and one for each mapping).  A chunk that is damaged, and bytes that
 * belong to none, are reported in their place.  With @stacks also the bytes of all stacks.
 * tests/trace_reader.py prints the same.
 *
 * The reader is rewound before.  Returns 0, -ENOMEM or the -errno of read(2); errors of @out are
 * left for ferror().
 */
int dump_trace(FILE *out, struct mlk_reader *trace, bool stacks);

#endif
