/* dump_reach.h - the part of a dump that tells of a process's memory, and of its code */
#ifndef REPORT_DUMP_REACH_H
#define REPORT_DUMP_REACH_H

#include <stdio.h>

#include "format/reader.h"

/* Write what @record, of POINTERS, PASS, HEAP, SMAPS or CODENAMES, says to @out. */
void dump_snapshot(FILE *out, const struct mlk_record *record);

#endif
